"""`memory_format=` in calls: checks it, and returns whether kernels can follow it."""

from __future__ import annotations

from typing import Any

from plugrad.dispatch.backends.kernel_sources import DECLINED
from plugrad.dispatch.keys import FUNCTIONALIZE_BIT
from plugrad.dtype import DType
from plugrad.memory_format import MemoryFormat, check_rank, contiguous_format, preserve_format
from plugrad.tensor.aliasing.layout import is_contiguous, strides
from plugrad.tensor.aliasing.memory_layout import memory_order, strides_in_order
from plugrad.tensor.base import TensorBase, ndim_of, sizes_of

Sizes = tuple[int, ...]


def keeps_layout(memory_format: MemoryFormat | None) -> bool:
    """Whether a copy keeps the memory layout of its source."""
    return memory_format is None or memory_format is preserve_format


def clone(self: TensorBase, memory_format: MemoryFormat | None) -> Any:
    """The tensor and whether its strides are kept. Other layouts are for the decomposition."""
    if keeps_layout(memory_format):
        return (self, True)
    if memory_format is contiguous_format:
        return (self, False)
    assert memory_format is not None
    check_rank(memory_format, ndim_of(self))
    return DECLINED


def to_copy(self: TensorBase, dtype: DType, memory_format: MemoryFormat | None) -> Any:
    """The tensor and its dtype: kernels that cast keep strides."""
    if memory_format is None or memory_format is preserve_format:
        return (self, dtype)
    check_rank(memory_format, ndim_of(self))
    return (self, dtype) if lies_in(self, memory_format) else DECLINED


def lies_in(self: TensorBase, memory_format: MemoryFormat) -> bool:
    """Whether a copy that keeps the strides is in a format, to dimensions of size 1."""
    order = memory_format.order
    if not order:
        return is_contiguous(self)
    return strides(self) == strides_in_order(sizes_of(self), order)


def order_like(self: TensorBase, memory_format: MemoryFormat | None) -> Sizes | None:
    """The order of dimensions of a new tensor like another; None if that is row by row.

    Where arrays cannot be written to, strides are not preserved.

    Raises:
        RuntimeError: tensors of that rank do not have the format.
    """
    if memory_format is None or memory_format is preserve_format:
        if self._keyset & FUNCTIONALIZE_BIT or is_contiguous(self):
            return None
        return memory_order(sizes_of(self), strides(self))
    check_rank(memory_format, ndim_of(self))
    return memory_format.order or None
