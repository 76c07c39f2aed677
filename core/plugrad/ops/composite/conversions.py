"""Copies in another dtype, on another device or in another memory format."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.device import CPU, Device
from plugrad.dispatch.backends.active import canonical_device
from plugrad.dispatch.backends.kernel_sources import DECLINED
from plugrad.dtype import (
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from plugrad.memory_format import MemoryFormat, check_rank, preserve_format
from plugrad.ops.composite.arrangement.memory_formats import copied, formatted
from plugrad.ops.prepare import shape as prepare
from plugrad.ops.prepare.memory_formats import keeps_layout
from plugrad.tensor.aliasing.layout import is_contiguous, strides
from plugrad.tensor.aliasing.memory_layout import suggested_format
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.promotion import cast
from plugrad.tensor.creation.transfer import cast_first, moved
from plugrad.tensor.interop.arrays import from_host, host_array

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def contiguous(self: Tensor, memory_format: MemoryFormat) -> Tensor:
    if is_contiguous(self, memory_format):
        return self
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return self.clone(memory_format=memory_format)


def clone(self: Tensor, memory_format: MemoryFormat | None) -> TensorBase:
    """Through host memory, or through a copy in row-major order."""
    prepared: Any = prepare.clone(self, memory_format)
    if prepared is DECLINED:
        assert memory_format is not None
        return copied(self, memory_format)
    made = np.array(host_array(self), order="K" if keeps_layout(memory_format) else "C")
    return from_host(made, self.dtype, self.device)


def to_copy(self: Tensor, dtype: DType, memory_format: MemoryFormat | None) -> TensorBase:
    prepare.to_copy(self, dtype, memory_format)
    return formatted(cast(self, dtype), memory_format)


def to_device(
    self: Tensor,
    device: Device,
    non_blocking: bool,
    dtype: DType | None,
    memory_format: MemoryFormat | None,
) -> TensorBase:
    if memory_format is not None:
        check_rank(memory_format, self.ndim)
    target = canonical_device(device)
    source: TensorBase = self
    if dtype is not None and dtype is not self.dtype and cast_first(self, dtype, target):
        source = cast(self, dtype)
    result = moved(source, target, non_blocking)
    if dtype is not None and result.dtype is not dtype:
        result = cast(result, dtype)
    return formatted(result, memory_format)


def _moved(
    self: Tensor,
    device: Device | None,
    dtype: DType | None,
    non_blocking: bool,
    copy: bool,
    memory_format: MemoryFormat | None,
) -> Tensor:
    kind = self.dtype if dtype is None else dtype
    target = self.device if device is None else canonical_device(device)
    if target is not self.device:
        wanted = None if kind is self.dtype else kind
        return F._to_device(self, target, non_blocking, wanted, memory_format=memory_format)
    if kind is not self.dtype or copy or not _looks_like(self, memory_format):
        return F._to_copy(self, kind, memory_format=memory_format)
    return self


def _looks_like(self: Tensor, memory_format: MemoryFormat | None) -> bool:
    """Whether a tensor is in a format, or else in none of those for its rank."""
    if keeps_layout(memory_format):
        return True
    return suggested_format(sizes_of(self), strides(self)) is memory_format


def to_device_and_dtype(
    self: Tensor,
    device: Device | None,
    dtype: DType | None,
    non_blocking: bool,
    copy: bool,
    memory_format: MemoryFormat | None,
) -> Tensor:
    return _moved(self, device, dtype, non_blocking, copy, memory_format)


def to_dtype(
    self: Tensor,
    dtype: DType,
    non_blocking: bool,
    copy: bool,
    memory_format: MemoryFormat | None,
) -> Tensor:
    return _moved(self, None, dtype, non_blocking, copy, memory_format)


def to_other(
    self: Tensor,
    other: Tensor,
    non_blocking: bool,
    copy: bool,
    memory_format: MemoryFormat | None,
) -> Tensor:
    return _moved(self, other.device, other.dtype, non_blocking, copy, memory_format)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    return _moved(self, other.device, other.dtype, False, False, None)


def cpu(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _moved(self, CPU, None, False, False, memory_format)


def _cast(self: Tensor, dtype: DType, memory_format: MemoryFormat | None) -> Tensor:
    return _moved(self, None, dtype, False, False, memory_format)


def to_float32(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, float32, memory_format)


def to_float64(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, float64, memory_format)


def to_float16(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, float16, memory_format)


def to_bfloat16(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, bfloat16, memory_format)


def to_complex64(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, complex64, memory_format)


def to_complex128(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, complex128, memory_format)


def to_int64(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, int64, memory_format)


def to_int32(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, int32, memory_format)


def to_int16(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, int16, memory_format)


def to_int8(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, int8, memory_format)


def to_uint8(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, uint8, memory_format)


def to_bool(self: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    return _cast(self, bool_, memory_format)
