"""Reading and writing elements by their positions in the flattened tensor, with `take` and `where`.

Indices are read on the host, where they are checked and become positions; the elements themselves
stay where they are. Nothing is written in place: an element that is written to is taken from the
source, and those that go to one place are added up in pairs, pairs of pairs, and so on.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import OUTSIDE_EMPTY, out_of_bounds, unlike_indices
from plugrad.dtype import bool_, int64
from plugrad.tensor.aliasing.strides import contiguous_strides
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.operands import device_mismatch
from plugrad.tensor.interop.arrays import from_host, host_array

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]
Array = Any


def host_index(index: TensorBase, of: TensorBase | None = None) -> Array:
    """An index tensor's elements on the host, int64; RuntimeError if it is not where `of` is."""
    if of is not None:
        check_device(index, of)
    return np.asarray(host_array(index)).astype(np.int64)


def check_device(index: TensorBase, of: TensorBase) -> None:
    """RuntimeError if an index or a mask is on another device than the tensor."""
    if index.device is not of.device:
        raise device_mismatch(of.device, index.device)


def index_tensor(positions: Array, like: TensorBase) -> TensorBase:
    """Positions as a tensor where another one lives."""
    return from_host(np.asarray(positions, np.int64, order="C"), int64, like.device)


def mask_tensor(mask: Array, like: TensorBase) -> TensorBase:
    """A mask as a tensor where another one lives."""
    return from_host(np.asarray(mask, np.bool_, order="C"), bool_, like.device)


def zero_like(tensor: TensorBase) -> Tensor:
    """A 0-dim zero of a tensor's dtype."""
    return F.zeros((), dtype=tensor.dtype, device=tensor.device)


def check_range(index: Array, size: int, dim: int, wrap: bool = False) -> None:
    """Raise for an index outside of [0, size), or of [-size, size) with `wrap`."""
    outside = index[(index < (-size if wrap else 0)) | (index >= size)].reshape(-1)
    if outside.size:
        message = out_of_bounds(outside[0], dim, size)
        raise IndexError(message) if wrap else RuntimeError(message)


def along(sizes: Sizes, dim: int, index: Array) -> Array:
    """Where `gather` reads: `index` counts along `dim`, its own place along the others."""
    if index.size == 0:
        return index
    if not sizes:
        sizes = (1,)
    where = index.reshape((1,)) if index.ndim == 0 else index
    check_range(where, sizes[dim], dim)
    steps = contiguous_strides(sizes)
    found = where * steps[dim]
    for axis, count in enumerate(where.shape):
        if axis != dim:
            found = found + _axis(count, steps[axis], where.ndim - axis - 1)
    return found.reshape(index.shape)


def _axis(count: int, step: int, behind: int) -> Array:
    """The offsets along one dimension, which has `behind` others behind it."""
    return (np.arange(count) * step).reshape((count,) + (1,) * behind)


def slices(sizes: Sizes, dim: int, index: Array) -> Array:
    """The positions of whole slices along `dim`, (outer, index, inner)."""
    if not sizes:
        sizes = (1,)
    outer, inner = 1, 1
    for size in sizes[:dim]:
        outer *= size
    for size in sizes[dim + 1 :]:
        inner *= size
    rows = _axis(outer, sizes[dim] * inner, 2) + (index.reshape(-1) * inner).reshape((-1, 1))
    return rows + np.arange(inner)


def indexed(sizes: Sizes, indices: list[Any]) -> Array:
    """Where `tensor[indices]` reads: host arrays of integers or masks, None for a whole dimension.

    Raises:
        IndexError: an index is out of range, or they do not broadcast.
    """
    steps = contiguous_strides(sizes)
    chosen: list[Any] = []
    lengths: list[int] = []
    strides: list[int] = []
    place = 0
    for index in indices:
        if index is None or index.dtype != np.bool_:
            taken = 1
            chosen.append(None if index is None else _wrapped(index, sizes[place], place))
        elif index.ndim == 0:
            # A new dimension with one element, which is read or not.
            taken = 0
            chosen.append(np.zeros(int(index), np.int64))
            lengths.append(1)
            strides.append(0)
        else:
            taken = index.ndim
            chosen.extend(index.nonzero())
        lengths.extend(sizes[place : place + taken])
        strides.extend(steps[place : place + taken])
        place += taken
    lengths.extend(sizes[place:])
    strides.extend(steps[place:])
    chosen.extend([None] * (len(lengths) - len(chosen)))
    return _combined(chosen, lengths, strides)


def _wrapped(index: Array, size: int, dim: int) -> Array:
    if size == 0 and index.size:
        raise IndexError(OUTSIDE_EMPTY)
    check_range(index, size, dim, True)
    return np.where(index < 0, index + size, index)


def _combined(chosen: list[Any], lengths: list[int], strides: list[int]) -> Array:
    """Whole dimensions stay where they are around indices that are neighbours, else follow them."""
    places = [place for place, index in enumerate(chosen) if index is not None]
    shapes = [chosen[place].shape for place in places]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise unlike_indices(shapes) from None
    neighbours = places[-1] - places[0] + 1 == len(places)
    front = places[0] if neighbours else 0
    whole = [place for place in range(len(chosen)) if chosen[place] is None]
    behind = len(whole) - front
    found = np.zeros(shape, np.int64)
    for place in places:
        found = found + chosen[place] * strides[place]
    found = found.reshape(shape + (1,) * behind)
    for number, place in enumerate(whole):
        after = len(whole) - number - 1
        if number < front:
            after += len(shape)
        found = found + _axis(lengths[place], strides[place], after)
    return found


def read(self: TensorBase, positions: Array) -> Tensor:
    """The elements at positions, in the shape of these."""
    if positions.size == 0:
        return F.empty(positions.shape, dtype=self.dtype, device=self.device)
    return F.take(self, index_tensor(positions, self))


def write(self: Tensor, positions: Array, source: Tensor) -> Tensor:
    """A copy with the elements of `source` at positions; of several for one, the last."""
    flat = positions.reshape(-1)
    if flat.size == 0:
        return self.clone()
    origin = np.full(self.numel(), -1, np.int64)
    origin[flat] = np.arange(flat.size)
    return merge(self, origin, source)


def merge(self: Tensor, origin: Array, source: Tensor) -> Tensor:
    """For each element its position in `source`; -1 keeps it."""
    origin = origin.reshape(sizes_of(self))
    taken = read(source, np.maximum(origin, 0))
    written = origin >= 0
    if written.all():
        return taken
    return F.where(mask_tensor(written, self), taken, self)


def add(self: Tensor, positions: Array, source: Tensor) -> Tensor:
    """A copy with the elements of `source` added at positions, as often as one occurs."""
    flat = positions.reshape(-1)
    if flat.size == 0:
        return self.clone()
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    counts = np.diff(starts, append=flat.size)
    last = np.repeat(starts + counts - 1, counts)
    values = read(source, order)
    nothing = zero_like(values)
    places = np.arange(flat.size)
    shift = 1
    # After each round an element is the sum of twice as many: of itself and those behind it.
    while shift < counts.max():
        inside = places + shift <= last
        moved = read(values, np.where(inside, places + shift, 0))
        values = values + F.where(mask_tensor(inside, values), moved, nothing)
        shift *= 2
    origin = np.full(self.numel(), -1, np.int64)
    origin[ordered[starts]] = starts
    origin = origin.reshape(sizes_of(self))
    sums = read(values, np.maximum(origin, 0))
    return self + F.where(mask_tensor(origin >= 0, self), sums, nothing)
