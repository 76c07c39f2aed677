"""Kernels that read and write elements by index arrays and masks.

Adding at repeated indices goes through one-dimensional positions, for which NumPy's `add.at` has a
fast loop.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad.plugins import kernel_errors as errors
from plugrad.plugins.strides import copy_order
from plugrad_cpu.numerics.adapters import as_operand
from plugrad_cpu.numerics.sorting import stable_order

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

# Positions along dimensions that are no longer are kept, for shapes that recur.
_KEPT: Final = 4096
# Up to so many elements `np.add.at` is faster than a sort.
_ADDED_ONE_BY_ONE: Final = 2048
# NumPy's stubs lack these arguments by position, which is faster.
_minimum: Final[Callable[..., Any]] = np.minimum.reduce
_maximum: Final[Callable[..., Any]] = np.maximum.reduce


def check_range(index: Array, size: int, dim: int, *, wrap: bool = False) -> None:
    """Raise for an index outside of [0, size), or of [-size, size) with `wrap`."""
    if index.size == 0:
        return
    low = -size if wrap else 0
    if _minimum(index, None) < low or _maximum(index, None) >= size:
        outside = index[(index < low) | (index >= size)].reshape(-1)[0]
        message = errors.out_of_bounds(outside, dim, size)
        raise IndexError(message) if wrap else RuntimeError(message)


def _place(index: Array, dim: int) -> tuple[Array, ...]:
    """Index arrays for all dimensions: `index` for `dim`, its own position for the others."""
    ndim = index.ndim
    arrays: list[Array] = []
    for axis, size in enumerate(index.shape):
        if axis == dim:
            arrays.append(index)
        else:
            made = _own_positions if size <= _KEPT else _own_positions.__wrapped__
            arrays.append(made(size, ndim - axis - 1))
    return tuple(arrays)


@functools.lru_cache(maxsize=256)
def _own_positions(size: int, after: int) -> Array:
    """0, 1, ... along a dimension with others after it."""
    found = np.arange(size).reshape((size,) + (1,) * after)
    found.flags.writeable = False
    return found


def _with_a_dim(array: Array) -> Array:
    return array.reshape(1) if array.ndim == 0 else array


def gather(array: Array, dim: int, index: Array) -> Array:
    if index.size == 0:
        return np.empty(index.shape, array.dtype)
    source = _with_a_dim(array)
    where = _with_a_dim(index)
    check_range(where, source.shape[dim], dim)
    result: Array = source[_place(where, dim)].reshape(index.shape)
    return result if result.flags.c_contiguous else np.ascontiguousarray(result)


def _add_at(target: Array, where: Any, values: Array) -> None:
    """Add values to `target[where]`, as often as a position occurs."""
    if target.flags.c_contiguous:
        positions = np.arange(target.size).reshape(target.shape)[where]
        spread = np.broadcast_to(values, positions.shape)
        np.add.at(target.reshape(-1), positions.reshape(-1), spread.reshape(-1))
    else:
        np.add.at(target, where, values)


def _scatter_into(target: Array, dim: int, index: Array, src: Array, add: bool) -> Array:
    if index.size == 0:
        return target
    into = target.reshape(1) if target.ndim == 0 else target
    where = _with_a_dim(index)
    check_range(where, into.shape[dim], dim)
    values = src[tuple([slice(size) for size in where.shape])] if src.ndim else src
    if add:
        _add_at(into, _place(where, dim), values)
    else:
        into[_place(where, dim)] = values
    return target


def scatter(array: Array, dim: int, index: Array, src: Array) -> Array:
    return _scatter_into(array.copy(), dim, index, src, False)


def scatter_value(array: Array, dim: int, index: Array, value: Any) -> Array:
    return _scatter_into(array.copy(), dim, index, _number(value, array.dtype), False)


def scatter_(array: Array, dim: int, index: Array, src: Array) -> Array:
    return _scatter_into(array, dim, index, src, False)


def scatter_value_(array: Array, dim: int, index: Array, value: Any) -> Array:
    return _scatter_into(array, dim, index, _number(value, array.dtype), False)


def scatter_add(array: Array, dim: int, index: Array, src: Array) -> Array:
    return _scatter_into(array.copy(), dim, index, src, True)


def scatter_add_(array: Array, dim: int, index: Array, src: Array) -> Array:
    return _scatter_into(array, dim, index, src, True)


def _number(value: Any, dtype: np.dtype[Any]) -> Array:
    """A Python number in a dtype it may have to be cut down to."""
    return np.array(value).astype(dtype)


def index_select(array: Array, dim: int, index: Array) -> Array:
    size = array.shape[dim] if array.ndim else 1
    if index.size and (index.min() < 0 or index.max() >= size):
        raise IndexError(errors.OUTSIDE_TABLE)
    if array.ndim == 0:
        return array.copy()
    return np.take(array, index.reshape(-1), dim)


def _slices(array: Array, dim: int, index: Any) -> Any:
    return (*(slice(None),) * dim, index)


def _index_add_into(target: Array, dim: int, index: Array, source: Array, alpha: Any) -> Array:
    into = target.reshape(1) if target.ndim == 0 else target
    where = index.reshape(-1)
    try:
        check_range(where, into.shape[dim], dim)
    except RuntimeError:
        if target.ndim > 1:
            raise
        raise IndexError(errors.OUTSIDE_TABLE) from None
    values = _with_a_dim(source)
    if alpha != 1:
        values = values * _number(alpha, values.dtype)
    if into.ndim == 1 or not into.flags.c_contiguous:
        _add_at(into, _slices(into, dim, where), values)
        return target
    if into.dtype == np.bool_:
        for place, position in enumerate(where):
            into[_slices(into, dim, position)] |= values[_slices(values, dim, place)]
        return target
    if values.size <= _ADDED_ONE_BY_ONE:
        np.add.at(into, _slices(into, dim, where), values)
    elif where.size:
        # Sorted by index, the slices that go to one place are neighbours and reduceat sums them.
        order = stable_order(where)
        ordered = where[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        sums = np.add.reduceat(np.take(values, order, dim), starts, axis=dim, dtype=into.dtype)
        into[_slices(into, dim, ordered[starts])] += sums
    return target


def index_add(array: Array, dim: int, index: Array, source: Array, alpha: Any) -> Array:
    return _index_add_into(array.copy("C"), dim, index, source, alpha)


def index_add_(array: Array, dim: int, index: Array, source: Array, alpha: Any) -> Array:
    return _index_add_into(array, dim, index, source, alpha)


def index_copy(array: Array, dim: int, index: Array, source: Array) -> Array:
    result = array.copy()
    into = result.reshape(1) if result.ndim == 0 else result
    where = index.reshape(-1)
    if where.size and (where.min() < 0 or where.max() >= into.shape[dim]):
        outside = where[(where < 0) | (where >= into.shape[dim])][0]
        raise IndexError(f"index_copy_(): {errors.out_of_bounds(outside, dim, into.shape[dim])}")
    into[_slices(into, dim, where)] = _with_a_dim(source)
    return result


def index_fill(array: Array, dim: int, index: Array, value: Any) -> Array:
    result = array.copy(copy_order(array))
    into = result.reshape(1) if result.ndim == 0 else result
    where = index.reshape(-1)
    check_range(where, into.shape[dim], dim, wrap=True)
    into[_slices(into, dim, where)] = as_operand(value, array.dtype)
    return result


def _check_indices(array: Array, indices: list[Array | None]) -> None:
    """Find what is wrong after NumPy refused: an index out of range, or shapes that differ."""
    place = 0
    shapes: list[Shape] = []
    for index in indices:
        if index is None:
            place += 1
        elif index.dtype == np.bool_:
            place += index.ndim
            shapes.append((int(index.sum()),))
        else:
            if array.shape[place] == 0 and index.size:
                raise IndexError(errors.OUTSIDE_EMPTY)
            check_range(index, array.shape[place], place, wrap=True)
            place += 1
            shapes.append(index.shape)
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise errors.unlike_indices(shapes) from None


def _where(indices: list[Array | None]) -> tuple[Any, ...]:
    return tuple([slice(None) if index is None else index for index in indices])


def index(array: Array, indices: list[Array | None]) -> Array:
    try:
        result: Array = array[_where(indices)]
    except (IndexError, ValueError):
        _check_indices(array, indices)
        raise
    if type(result) is not np.ndarray or result.base is not None:
        return np.array(result, order="C")
    flags = result.flags
    if not flags.c_contiguous and (array.flags.c_contiguous or 0 in array.strides):
        # NumPy puts what several indices say first in memory.
        return np.ascontiguousarray(result)
    return result


def _put_into(target: Array, indices: list[Array | None], values: Array, accumulate: bool) -> Array:
    where = _where(indices)
    try:
        if accumulate:
            _add_at(target, where, values)
        else:
            target[where] = values
    except (IndexError, ValueError):
        _check_indices(target, indices)
        wanted = target[where].shape
        raise errors.unlike_values(values.shape, wanted) from None
    return target


def index_put(array: Array, indices: list[Array | None], values: Array, accumulate: bool) -> Array:
    return _put_into(array.copy(copy_order(array)), indices, values, accumulate)


def index_put_(array: Array, indices: list[Array | None], values: Array, accumulate: bool) -> Array:
    return _put_into(array, indices, values, accumulate)


def masked_fill(array: Array, mask: Array, value: Any) -> Array:
    shape = array.shape
    if mask.shape != shape:
        shape = np.broadcast_shapes(shape, mask.shape)
    result = array.copy() if shape == array.shape else np.broadcast_to(array, shape).copy()
    np.copyto(result, as_operand(value, array.dtype), casting="unsafe", where=mask)
    return result


def masked_fill_(array: Array, mask: Array, value: Any) -> Array:
    np.copyto(array, as_operand(value, array.dtype), casting="unsafe", where=mask)
    return array


def masked_select(array: Array, mask: Array) -> Array:
    if array.shape != mask.shape:
        array, mask = np.broadcast_arrays(array, mask)
    result: Array = array[mask]
    return result


def masked_scatter(array: Array, mask: Array, source: Array) -> Array:
    shape = np.broadcast_shapes(array.shape, mask.shape)
    result = np.broadcast_to(array, shape).copy()
    where = np.broadcast_to(mask, shape)
    count = int(np.count_nonzero(where))
    if source.size < count:
        raise RuntimeError(errors.TOO_FEW_ELEMENTS)
    result[where] = source.reshape(-1)[:count]
    return result


def take(array: Array, index: Array) -> Array:
    if index.size:
        size = math.prod(array.shape)
        if index.min() < -size or index.max() >= size:
            outside = index[(index < -size) | (index >= size)].reshape(-1)[0]
            raise IndexError(errors.out_of_range(outside, size))
    result: Array = array.reshape(-1)[index]
    return result


def nonzero(array: Array) -> Array:
    if array.ndim == 0:
        return np.zeros((int(bool(array)), 0), np.int64)
    return np.argwhere(array)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "gather": gather,
    "scatter.value": scatter_value,
    "scatter.src": scatter,
    "scatter_.value": scatter_value_,
    "scatter_.src": scatter_,
    "scatter_add": scatter_add,
    "scatter_add_": scatter_add_,
    "index_select": index_select,
    "index_add": index_add,
    "index_add_": index_add_,
    "index_copy": index_copy,
    "index_fill": index_fill,
    "index": index,
    "index_put": index_put,
    "index_put_": index_put_,
    "masked_fill": masked_fill,
    "masked_fill_": masked_fill_,
    "masked_select": masked_select,
    "masked_scatter": masked_scatter,
    "take": take,
    "nonzero": nonzero,
}
