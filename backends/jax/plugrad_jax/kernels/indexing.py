"""Kernels that read and write elements by index arrays and masks.

An index out of range reads nan, or the least integer, and does not write; the error comes when the
program waits for the device: see `plugrad_jax.deferred`. A mask that determines a shape is read on
the host, so that no program must be compiled for each shape. Where possible, kernels avoid such
shapes: writing at a mask selects between two arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from plugrad.plugins import kernel_errors as errors
from plugrad_jax.deferred import raise_later
from plugrad_jax.kernels.creation import in_dtype
from plugrad_jax.kernels.index_range import Outside, outside, raise_outside
from plugrad_jax.kernels.placement import require_values
from plugrad_jax.kernels.programs import Array, compiled
from plugrad_jax.sharding.placing import beside, host_of

Shape = tuple[int, ...]
Indices = list[Array | None]

_ALL: Final = slice(None)


def _with_a_dim(array: Array) -> Array:
    return array.reshape(1) if array.ndim == 0 else array


def _size(array: Array, dim: int) -> int:
    size: int = array.shape[dim] if array.ndim else 1
    return size


def _place(index: Array, dim: int) -> tuple[Array, ...]:
    """Index arrays for all dimensions: `index` for `dim`, its own position for the others."""
    return tuple(
        index if axis == dim else lax.broadcasted_iota(index.dtype, index.shape, axis)
        for axis in range(index.ndim)
    )


def _read(array: Array, where: Any) -> Array:
    return array.at[where].get(mode="fill")


def _write(array: Array, where: Any, values: Array) -> Array:
    return array.at[where].set(values, mode="drop")


def _add(array: Array, where: Any, values: Array) -> Array:
    """As often as a position occurs; of bools their disjunction."""
    into = array.at[where]
    return (into.max if array.dtype == jnp.bool_ else into.add)(values, mode="drop")


def gather(array: Array, dim: int, index: Array) -> Array:
    if index.size == 0:
        return _nothing(array, index.shape)
    result, found = _gather(array, dim, index)
    raise_outside(found, errors.out_of_bounds("{}", dim, _size(array, dim)))
    return result


@compiled(1)
def _nothing(array: Array, shape: Shape) -> Array:
    return jnp.zeros(shape, array.dtype)


@compiled(1)
def _gather(array: Array, dim: int, index: Array) -> tuple[Array, Outside]:
    where = _with_a_dim(index)
    result = _read(_with_a_dim(array), _place(where, dim)).reshape(index.shape)
    return result, outside(index, _size(array, dim))


def _scattering(write: Callable[..., Array]) -> Callable[..., Array]:
    @compiled(1)
    def scattered(array: Array, dim: int, index: Array, src: Any) -> tuple[Array, Outside]:
        where = _with_a_dim(index)
        src = in_dtype(src, array.dtype)
        values = src[tuple(slice(size) for size in where.shape)] if src.ndim else src
        into = _with_a_dim(array)
        result = write(into, _place(where, dim), values).reshape(array.shape)
        return result, outside(index, _size(array, dim))

    def kernel(array: Array, dim: int, index: Array, src: Any) -> Array:
        if index.size == 0:
            return array
        result, found = scattered(array, dim, index, src)
        raise_outside(found, errors.out_of_bounds("{}", dim, _size(array, dim)))
        return result

    return kernel


scatter: Final = _scattering(_write)
scatter_add: Final = _scattering(_add)


def index_select(array: Array, dim: int, index: Array) -> Array:
    result, found = _index_select(array, dim, index)
    raise_outside(found, errors.OUTSIDE_TABLE, IndexError)
    return result


@compiled(1)
def _index_select(array: Array, dim: int, index: Array) -> tuple[Array, Outside]:
    found = outside(index, _size(array, dim))
    if array.ndim == 0:
        return jnp.copy(array), found
    return jnp.take(array, index.reshape(-1), dim, mode="fill"), found


@compiled(1, 4)
def _write_slices(
    array: Array, dim: int, index: Array, source: Any, wrap: bool
) -> tuple[Array, Outside]:
    where = (*(_ALL,) * dim, index.reshape(-1))
    values = in_dtype(source, array.dtype)
    result = _write(_with_a_dim(array), where, values).reshape(array.shape)
    return result, outside(index, _size(array, dim), wrap=wrap)


@compiled(1)
def _add_slices(
    array: Array, dim: int, index: Array, source: Array, alpha: Any
) -> tuple[Array, Outside]:
    into = _with_a_dim(array)
    values = _with_a_dim(source)
    if alpha is not None:
        values = values * in_dtype(alpha, values.dtype)
    where = (*(_ALL,) * dim, index.reshape(-1))
    result = _add(into, where, values).reshape(array.shape)
    return result, outside(index, _size(array, dim))


def index_add(array: Array, dim: int, index: Array, source: Array, alpha: Any) -> Array:
    result, found = _add_slices(array, dim, index, source, None if alpha == 1 else alpha)
    if array.ndim > 1:
        raise_outside(found, errors.out_of_bounds("{}", dim, _size(array, dim)))
    else:
        raise_outside(found, errors.OUTSIDE_TABLE, IndexError)
    return result


def index_copy(array: Array, dim: int, index: Array, source: Array) -> Array:
    result, found = _write_slices(array, dim, index, source, False)
    message = f"index_copy_(): {errors.out_of_bounds('{}', dim, _size(array, dim))}"
    raise_outside(found, message, IndexError)
    return result


def index_fill(array: Array, dim: int, index: Array, value: Any) -> Array:
    result, found = _write_slices(array, dim, index, value, True)
    raise_outside(found, errors.out_of_bounds("{}", dim, _size(array, dim)), IndexError)
    return result


def _is_mask(index: Array | None) -> bool:
    return index is not None and index.dtype == np.bool_


def _check_indices(array: Array, indices: Indices) -> None:
    """IndexError for shapes that differ, and integers in a dimension that has no elements."""
    shapes: list[Shape] = []
    for dim, index in enumerate(indices):
        if index is None:
            continue
        if array.shape[dim] == 0 and index.size:
            raise IndexError(errors.OUTSIDE_EMPTY)
        shapes.append(index.shape)
    if len(shapes) > 1:
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            raise errors.unlike_indices(shapes) from None


def _where(indices: Indices) -> tuple[Any, ...]:
    return tuple(_ALL if index is None else index for index in indices)


def _without_masks(array: Array, indices: Indices, operator: str) -> tuple[Array, Indices]:
    """Masks as the positions where they hold; a 0-dim one has a dimension of its own."""
    spelled: Indices = []
    for index in indices:
        if not _is_mask(index):
            spelled.append(index)
            continue
        require_values(index, operator, "plugrad.where(mask, a, b) has the shape of the mask")
        mask = host_of(index)
        if mask.ndim == 0:
            array = jnp.expand_dims(array, len(spelled))
            spelled.append(np.zeros(int(mask), np.int64))
        else:
            spelled += mask.nonzero()
    return array, spelled


def index(array: Array, indices: Indices) -> Array:
    if any(_is_mask(index) for index in indices):
        array, indices = _without_masks(array, indices, "index.Tensor")
    _check_indices(array, indices)
    result, found = _index(array, indices)
    _raise_outside(found, array.shape)
    return result


@compiled()
def _index(array: Array, indices: Indices) -> tuple[Array, Outside]:
    return _read(array, _where(indices)), _outside(array, indices)


def _outside(array: Array, indices: Indices) -> Outside:
    """For all indices: whether one is out of range, its dimension and the first such index."""
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    checked = [outside(jnp.asarray(indices[dim]), array.shape[dim], wrap=True) for dim in dims]
    bad = jnp.stack([flag for flag, _ in checked])
    first = jnp.argmax(bad)
    numbers = jnp.stack([number.astype(jnp.int64) for _, number in checked])
    return bad.any(), jnp.stack([jnp.asarray(dims)[first], numbers[first]])


def _raise_outside(found: Outside, shape: Shape) -> None:
    def error(place: Any) -> Exception:
        dim, index = (int(number) for number in place)
        return IndexError(errors.out_of_bounds(index, dim, shape[dim]))

    raise_later(found[0], error, found[1])


def index_put(array: Array, indices: Indices, values: Array, accumulate: bool) -> Array:
    given = [place for place, index in enumerate(indices) if index is not None]
    mask = indices[given[0]] if len(given) == 1 and _is_mask(indices[given[0]]) else None
    if mask is not None and mask.ndim:
        return _put_at_mask(array, mask, given[0], values, accumulate)
    shape = array.shape
    if any(_is_mask(index) for index in indices):
        array, indices = _without_masks(array, indices, "index_put")
    _check_indices(array, indices)
    _check_values_fit(array, indices, values)
    result, found = _index_put(array, indices, values, accumulate)
    _raise_outside(found, array.shape)
    return result.reshape(shape)


@compiled(3)
def _index_put(
    array: Array, indices: Indices, values: Array, accumulate: bool
) -> tuple[Array, Outside]:
    result = (_add if accumulate else _write)(array, _where(indices), values)
    return result, _outside(array, indices)


def _check_values_fit(array: Array, indices: Indices, values: Array) -> None:
    if values.ndim == 0:
        return
    wanted = np.broadcast_to(np.empty(()), array.shape)[
        tuple(_ALL if index is None else np.zeros(index.shape, np.int64) for index in indices)
    ].shape
    _check_broadcast(values.shape, wanted)


def _check_broadcast(given: Shape, wanted: Shape) -> None:
    try:
        fits = np.broadcast_shapes(given, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise errors.unlike_values(given, wanted)


def _put_at_mask(array: Array, mask: Array, dim: int, values: Array, accumulate: bool) -> Array:
    """Values for each element of the mask's dimensions alike, or one for each that holds."""
    behind = array.ndim - dim - mask.ndim
    count = values.shape[-behind - 1] if values.ndim > behind else 1
    found = (*array.shape[:dim], count, *array.shape[dim + mask.ndim :])
    _check_broadcast(values.shape, found)
    if count == 0:
        return array
    result, bad = _put_where(array, mask, dim, values, accumulate)
    if count != 1:
        raise_later(
            bad, lambda _: errors.unlike_values(values.shape, "the elements that the mask picks")
        )
    return result


@compiled(2, 4)
def _put_where(
    array: Array, mask: Array, dim: int, values: Array, accumulate: bool
) -> tuple[Array, Array]:
    """The array, and whether there are not as many values as elements where the mask holds."""
    rest = array.shape[dim + mask.ndim :]
    flat = mask.reshape(-1)
    bad = jnp.zeros((), jnp.bool_)
    if values.ndim > len(rest) and values.shape[-len(rest) - 1] != 1:
        bad = jnp.count_nonzero(flat) != values.shape[-len(rest) - 1]
        numbers = jnp.cumsum(flat) - 1
        values = jnp.take(values, numbers, values.ndim - len(rest) - 1, mode="clip")
    flattened = array.reshape(*array.shape[:dim], flat.size, *rest)
    if accumulate:
        values = flattened | values if array.dtype == jnp.bool_ else flattened + values
    chosen = jnp.where(flat.reshape(-1, *(1,) * len(rest)), values, flattened)
    return chosen.reshape(array.shape), bad


@compiled()
def masked_fill(array: Array, mask: Array, value: Any) -> Array:
    return jnp.where(mask, in_dtype(value, array.dtype), array)


def masked_select(array: Array, mask: Array) -> Array:
    """On the host, where elements are picked without a program for each number of them."""
    require_values(mask, "masked_select", "plugrad.where(mask, input, 0) has the mask's shape")
    where = host_of(mask)
    if isinstance(array, jax.core.Tracer):
        shape = np.broadcast_shapes(array.shape, where.shape)
        return _read(jnp.broadcast_to(array, shape), np.broadcast_to(where, shape).nonzero())
    values, where = np.broadcast_arrays(host_of(array), where)
    return beside(values[where], array)


def masked_scatter(array: Array, mask: Array, source: Array) -> Array:
    result, bad = _masked_scatter(array, mask, source)
    raise_later(bad, _too_few)
    return result


def _too_few(detail: Any) -> Exception:
    return RuntimeError(errors.TOO_FEW_ELEMENTS)


@compiled()
def _masked_scatter(array: Array, mask: Array, source: Array) -> tuple[Array, Array]:
    array, mask = jnp.broadcast_arrays(array, mask)
    bad = jnp.count_nonzero(mask) > source.size
    if source.size == 0:
        return array, bad
    numbers = jnp.cumsum(mask.reshape(-1)) - 1
    values = jnp.take(source.reshape(-1), numbers, mode="clip").reshape(mask.shape)
    return jnp.where(mask, values, array), bad


def take(array: Array, index: Array) -> Array:
    result, found = _take(array, index)
    raise_outside(found, errors.out_of_range("{}", array.size), IndexError)
    return result


@compiled()
def _take(array: Array, index: Array) -> tuple[Array, Outside]:
    result = jnp.take(array.reshape(-1), index, mode="fill")
    return result, outside(index, array.size, wrap=True)


def nonzero(array: Array) -> Array:
    """On the host: see `masked_select`."""
    require_values(array, "nonzero", "plugrad.where(condition, a, b) has a shape of its own")
    host = host_of(array)
    found = np.argwhere(host) if host.ndim else np.zeros((int(bool(host)), 0), np.int64)
    return beside(found, array)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "gather": gather,
    "scatter": scatter,
    "scatter_add": scatter_add,
    "index_select": index_select,
    "index_add": index_add,
    "index_copy": index_copy,
    "index_fill": index_fill,
    "index": index,
    "index_put": index_put,
    "masked_fill": masked_fill,
    "masked_select": masked_select,
    "masked_scatter": masked_scatter,
    "take": take,
    "nonzero": nonzero,
}
