"""Copies of a tensor with a part replaced.

On mutable arrays this is a copy, a view of it and a write. On immutable arrays each element is
selected from one of the two; there, writes to views use these operators, see
`tensor/aliasing/functionalize.py`.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plugrad._generated import functions as F
from plugrad.dispatch.keys import FUNCTIONALIZE_BIT
from plugrad.memory_format import contiguous_format
from plugrad.ops.composite.selection import positions
from plugrad.ops.composite.selection.view_gradients import (
    diagonal_origins,
    slice_origins,
)
from plugrad.ops.prepare import slices as prepare
from plugrad.ops.prepare.views import wrapped_select, wrapped_slice
from plugrad.tensor.aliasing.layout import is_contiguous, storage_offset, strides
from plugrad.tensor.aliasing.strides import may_overlap, reach, strided_positions
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]


def _is_mutable(self: TensorBase) -> bool:
    return not self._keyset & FUNCTIONALIZE_BIT


def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> TensorBase:
    prepare.select_scatter(self, src, dim, index)
    _, place, position = wrapped_select(self, dim, index)
    return F.slice_scatter(self, src.unsqueeze(place), place, position, position + 1, 1)


def slice_scatter(
    self: Tensor, src: Tensor, dim: int, start: int | None, end: int | None, step: int
) -> TensorBase:
    checked = prepare.slice_scatter(self, src, dim, start, end, step)
    source: Tensor = checked[1]  # type: ignore[assignment]  # prepare gives objects
    if _is_mutable(self):
        result = self.clone()
        F.slice(result, dim, start, end, step).copy_(source)
        return result
    place, first, last = wrapped_slice(self, dim, start, end, step)
    if first >= last or source.numel() == 0:
        return self.clone()
    sizes = sizes_of(self)
    if step == 1:
        before = F.slice(self, place, 0, first, 1)
        behind = F.slice(self, place, last, None, 1)
        return F.cat([before, source, behind], place)
    origin, written = slice_origins(sizes[place], first, step, sizes_of(source)[place])
    spread = source.index_select(place, positions.index_tensor(origin, self))
    mask = written.reshape((-1,) + (1,) * (len(sizes) - place - 1))
    return F.where(positions.mask_tensor(mask, self), spread, self)


def diagonal_scatter(self: Tensor, src: Tensor, offset: int, dim1: int, dim2: int) -> TensorBase:
    checked = prepare.diagonal_scatter(self, src, offset, dim1, dim2)
    source: Tensor = checked[1]  # type: ignore[assignment]  # prepare gives objects
    if _is_mutable(self):
        result = self.clone()
        result.diagonal(offset, dim1, dim2).copy_(source)
        return result
    if source.numel() == 0:
        return self.clone()
    first, second = checked[3], checked[4]
    assert isinstance(first, int)
    assert isinstance(second, int)
    sizes = sizes_of(self)
    origin, written = diagonal_origins(sizes[first], sizes[second], offset)
    last = source.ndim - 1
    spread = source.index_select(last, positions.index_tensor(origin.reshape(-1), self))
    matrices = spread.view((*sizes_of(source)[:last], sizes[first], sizes[second]))
    order = list(range(last))
    for place, dim in sorted(((first, last), (second, last + 1))):
        order.insert(place, dim)
    if first > second:
        written = written.T
    mask = written.reshape(
        [size if dim in (first, second) else 1 for dim, size in enumerate(sizes)]
    )
    return F.where(positions.mask_tensor(mask, self), matrices.permute(order), self)


def as_strided_scatter(
    self: Tensor, src: Tensor, size: Sizes, stride: Sizes, storage_offset_: int | None
) -> TensorBase:
    start = storage_offset(self)
    offset = start if storage_offset_ is None else storage_offset_
    if start == 0 and is_contiguous(self):
        return _scattered(self, src, size, stride, offset)
    own = sizes_of(self)
    steps = strides(self)
    count = max(reach(size, stride, offset), reach(own, steps, start))
    memory = self.as_strided((count,), (1,), 0)
    written = _scattered(memory, src, size, stride, offset)
    return written.as_strided(own, steps, start).clone()  # a result is not a view


def _scattered(self: Tensor, src: Tensor, size: Sizes, stride: Sizes, offset: int) -> Tensor:
    """If several elements go to one place, the last one stays, and only it has a gradient."""
    if not may_overlap(size, stride):
        return F._as_strided_scatter(self, src, size, stride, offset)
    prepare.as_strided_scatter(self, src, size, stride, offset)
    cells = strided_positions(np, size, stride, offset)
    return positions.write(self, cells, src.to(self.dtype))


def as_strided_scatter_of_elements(
    self: Tensor, src: Tensor, size: Sizes, stride: Sizes, storage_offset: int
) -> TensorBase:
    checked = prepare.as_strided_scatter(self, src, size, stride, storage_offset)
    source: Tensor = checked[1]  # type: ignore[assignment]  # prepare gives objects
    if _is_mutable(self):
        result = self.clone(memory_format=contiguous_format)
        result.as_strided(size, stride, storage_offset).copy_(source)
        return result
    if source.numel() == 0:
        return self.clone()
    cells = strided_positions(np, size, stride, storage_offset)
    return positions.write(self, cells, source)
