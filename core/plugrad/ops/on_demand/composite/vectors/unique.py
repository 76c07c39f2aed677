"""The unique elements or slices of a tensor. Their number depends on the elements, so they are
sorted on the host."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import int64
from plugrad.ops.prepare.reductions import wrap_dim
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.interop.arrays import from_host, host_array

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Array = Any


def unique2_on_host(self: Tensor, sorted: bool, return_inverse: bool, return_counts: bool) -> Any:
    rows = _rows(self, None, "unique")
    return _different(self, None, rows, np.argsort(rows[:, 0], kind="stable"), True, return_counts)


def unique_dim_on_host(
    self: Tensor, dim: int, sorted: bool, return_inverse: bool, return_counts: bool
) -> Any:
    place = _checked_dim(self, dim)
    rows = _rows(self, place, "unique_dim")
    columns = rows.shape[1]
    # The last key is the first to be compared.
    order = np.lexsort(rows.T[::-1]) if columns else np.zeros(min(len(rows), 1), np.int64)
    return _different(self, place, rows, order, True, True)


def unique_consecutive_on_host(
    self: Tensor, return_inverse: bool, return_counts: bool, dim: int | None
) -> Any:
    place = None if dim is None else _checked_dim(self, dim)
    rows = _rows(self, place, "unique_consecutive")
    inverse, counts = return_inverse or dim is not None, return_counts or dim is not None
    return _different(self, place, rows, np.arange(len(rows)), inverse, counts)


def _checked_dim(self: Tensor, dim: int) -> int:
    if self.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    place = wrap_dim(dim, self.ndim)
    sizes = sizes_of(self)
    if 0 in sizes[:place] + sizes[place + 1 :] and sizes[place] != 0:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        )
    return place


def _rows(self: Tensor, place: int | None, name: str) -> Array:
    """The elements, or the slices along a dimension, as the rows of a matrix."""
    if self.dtype.is_complex:
        raise not_implemented(name, self.dtype)
    array = np.asarray(host_array(self))
    if array.dtype.kind == "V":  # NumPy does not sort bfloat16
        array = array.astype(np.float32)
    if place is None:
        return array.reshape((-1, 1))
    moved = np.moveaxis(array, place, 0)
    return moved.reshape((moved.shape[0], -1 if moved.size else 0))


def _different(
    self: Tensor, place: int | None, rows: Array, order: Array, inverse: bool, counts: bool
) -> tuple[TensorBase, Any, Any]:
    """For rows in an order in which equal ones are neighbours: the first row of each group, each
    row's group, and the sizes of the groups."""
    ordered = rows[order]
    begins = np.ones(len(ordered), np.bool_)
    if len(ordered) > 1:
        begins[1:] = (ordered[1:] != ordered[:-1]).any(1)
    chosen = order[begins]
    sizes = sizes_of(self)
    taken = from_host(chosen.astype(np.int64), int64, self.device)
    output: Any
    if place is None:
        output = self.reshape((-1,)).index_select(0, taken)
    else:
        output = self.index_select(place, taken)
    numbers = np.empty(len(ordered), np.int64)
    numbers[order] = np.cumsum(begins) - 1
    where = numbers.reshape(sizes) if place is None else numbers
    starts = np.flatnonzero(begins)
    lengths = np.diff(np.append(starts, len(ordered)))
    return output, _int64(where, inverse, self), _int64(lengths, counts, self)


def _int64(array: Array, wanted: bool, like: Tensor) -> Any:
    if not wanted:
        return F.empty((0,), dtype=int64, device=like.device)
    return from_host(np.ascontiguousarray(array, np.int64).reshape(array.shape), int64, like.device)
