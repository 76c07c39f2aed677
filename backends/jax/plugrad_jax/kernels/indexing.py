"""Kernels that read and write elements by index arrays and masks.

An index out of range reads nan, or the least integer, and writes nothing, unless values are
checked: see `plugrad_jax.value_checks`. A mask whose elements decide on a shape is looked at on
the host, where no program has to be compiled for each shape. What can be said without such a shape
is: writing at a mask chooses between two arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from plugrad_jax.kernels.creation import in_dtype
from plugrad_jax.kernels.program import Array, program, require_values
from plugrad_jax.value_checks import check_range, check_values

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
    check_range(index, _size(array, dim), dim)
    return _gather(array, dim, index)


@program(1)
def _gather(array: Array, dim: int, index: Array) -> Array:
    if index.size == 0:
        return jnp.empty(index.shape, array.dtype)
    where = _with_a_dim(index)
    return _read(_with_a_dim(array), _place(where, dim)).reshape(index.shape)


def _scattering(write: Callable[..., Array]) -> Callable[..., Array]:
    @program(1)
    def scattered(array: Array, dim: int, index: Array, src: Any) -> Array:
        if index.size == 0:
            return array
        where = _with_a_dim(index)
        src = in_dtype(src, array.dtype)
        values = src[tuple(slice(size) for size in where.shape)] if src.ndim else src
        into = _with_a_dim(array)
        return write(into, _place(where, dim), values).reshape(array.shape)

    def kernel(array: Array, dim: int, index: Array, src: Any) -> Array:
        check_range(index, _size(array, dim), dim)
        return scattered(array, dim, index, src)

    return kernel


scatter: Final = _scattering(_write)
scatter_add: Final = _scattering(_add)


def index_select(array: Array, dim: int, index: Array) -> Array:
    check_range(index, _size(array, dim), dim, IndexError, "index out of range in self")
    return _index_select(array, dim, index)


@program(1)
def _index_select(array: Array, dim: int, index: Array) -> Array:
    if array.ndim == 0:
        return jnp.copy(array)
    return jnp.take(array, index.reshape(-1), dim, mode="fill")


@program(1)
def _write_slices(array: Array, dim: int, index: Array, source: Any) -> Array:
    where = (*(_ALL,) * dim, index.reshape(-1))
    values = in_dtype(source, array.dtype)
    return _write(_with_a_dim(array), where, values).reshape(array.shape)


@program(1)
def _add_slices(array: Array, dim: int, index: Array, source: Array, alpha: Any) -> Array:
    into = _with_a_dim(array)
    values = _with_a_dim(source)
    if alpha is not None:
        values = values * in_dtype(alpha, values.dtype)
    where = (*(_ALL,) * dim, index.reshape(-1))
    return _add(into, where, values).reshape(array.shape)


def index_add(array: Array, dim: int, index: Array, source: Array, alpha: Any) -> Array:
    check_range(index, _size(array, dim), dim)
    return _add_slices(array, dim, index, source, None if alpha == 1 else alpha)


def index_copy(array: Array, dim: int, index: Array, source: Array) -> Array:
    size = _size(array, dim)
    message = f"index_copy_(): index {{}} is out of bounds for dimension {dim} with size {size}"
    check_range(index, size, dim, IndexError, message)
    return _write_slices(array, dim, index, source)


def index_fill(array: Array, dim: int, index: Array, value: Any) -> Array:
    check_range(index, _size(array, dim), dim, IndexError, wrap=True)
    return _write_slices(array, dim, index, value)


def _is_mask(index: Array | None) -> bool:
    return index is not None and index.dtype == np.bool_


def _check_indices(array: Array, indices: Indices) -> None:
    """IndexError for integers out of range, so far as that can be said, and shapes that differ."""
    shapes: list[Shape] = []
    for dim, index in enumerate(indices):
        if index is None:
            continue
        size = array.shape[dim]
        if size == 0 and index.size:
            raise IndexError("index is out of bounds for dimension with size 0")
        check_range(index, size, dim, IndexError, wrap=True)
        shapes.append(index.shape)
    if len(shapes) > 1:
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            shown = ", ".join(str(list(shape)) for shape in shapes)
            raise IndexError(
                "shape mismatch: indexing tensors could not be broadcast together with shapes "
                f"{shown}"
            ) from None


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
        mask = np.asarray(index)
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
    return _index(array, indices)


@program()
def _index(array: Array, indices: Indices) -> Array:
    return _read(array, _where(indices))


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
    return _index_put(array, indices, values, accumulate).reshape(shape)


@program(3)
def _index_put(array: Array, indices: Indices, values: Array, accumulate: bool) -> Array:
    return (_add if accumulate else _write)(array, _where(indices), values)


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
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(given)} cannot be broadcast to "
            f"indexing result of shape {list(wanted)}"
        )


def _put_at_mask(array: Array, mask: Array, dim: int, values: Array, accumulate: bool) -> Array:
    """Values for each element of the mask's dimensions alike, or one for each that holds."""
    behind = array.ndim - dim - mask.ndim
    count = values.shape[-behind - 1] if values.ndim > behind else 1
    if count != 1:
        check_values(
            _holds_often,
            RuntimeError,
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to "
            "the indexing result",
            mask,
            count,
        )
    found = (*array.shape[:dim], count, *array.shape[dim + mask.ndim :])
    _check_broadcast(values.shape, found)
    if count == 0:
        return array
    return _put_where(array, mask, dim, values, accumulate)


def _holds_often(mask: Array, count: Any) -> Array:
    return jnp.count_nonzero(mask) == count


@program(2, 4)
def _put_where(array: Array, mask: Array, dim: int, values: Array, accumulate: bool) -> Array:
    rest = array.shape[dim + mask.ndim :]
    flat = mask.reshape(-1)
    if values.ndim > len(rest) and values.shape[-len(rest) - 1] != 1:
        numbers = jnp.cumsum(flat) - 1
        values = jnp.take(values, numbers, values.ndim - len(rest) - 1, mode="clip")
    flattened = array.reshape(*array.shape[:dim], flat.size, *rest)
    if accumulate:
        values = flattened | values if array.dtype == jnp.bool_ else flattened + values
    chosen = jnp.where(flat.reshape(-1, *(1,) * len(rest)), values, flattened)
    return chosen.reshape(array.shape)


@program()
def masked_fill(array: Array, mask: Array, value: Any) -> Array:
    return jnp.where(mask, in_dtype(value, array.dtype), array)


def masked_select(array: Array, mask: Array) -> Array:
    """On the host, where elements are picked without a program for each number of them."""
    require_values(mask, "masked_select", "plugrad.where(mask, input, 0) has the mask's shape")
    where = np.asarray(mask)
    if isinstance(array, jax.core.Tracer):
        shape = np.broadcast_shapes(array.shape, where.shape)
        return _index(jnp.broadcast_to(array, shape), np.broadcast_to(where, shape).nonzero())
    values, where = np.broadcast_arrays(np.asarray(array), where)
    return jax.device_put(values[where], array.sharding)


def masked_scatter(array: Array, mask: Array, source: Array) -> Array:
    check_values(
        _holds_at_most,
        RuntimeError,
        "Number of elements of source < number of ones in mask",
        array,
        mask,
        source,
    )
    return _masked_scatter(array, mask, source)


def _holds_at_most(array: Array, mask: Array, source: Array) -> Array:
    shape = np.broadcast_shapes(array.shape, mask.shape)
    return jnp.count_nonzero(jnp.broadcast_to(mask, shape)) <= source.size


@program()
def _masked_scatter(array: Array, mask: Array, source: Array) -> Array:
    array, mask = jnp.broadcast_arrays(array, mask)
    if source.size == 0:
        return array
    numbers = jnp.cumsum(mask.reshape(-1)) - 1
    values = jnp.take(source.reshape(-1), numbers, mode="clip").reshape(mask.shape)
    return jnp.where(mask, values, array)


def take(array: Array, index: Array) -> Array:
    size = math.prod(array.shape)
    message = f"out of range: tried to access index {{}} on a tensor of {size} elements."
    check_range(index, size, 0, IndexError, message, wrap=True)
    return _take(array, index)


@program()
def _take(array: Array, index: Array) -> Array:
    return jnp.take(array.reshape(-1), index, mode="fill")


def nonzero(array: Array) -> Array:
    """On the host: see `masked_select`."""
    require_values(array, "nonzero", "plugrad.where(condition, a, b) has a shape of its own")
    host = np.asarray(array)
    found = np.argwhere(host) if host.ndim else np.zeros((int(bool(host)), 0), np.int64)
    return jax.device_put(found, array.sharding)


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
