"""Computes 16-bit floats in float32, which is more accurate and overflows less."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dtype import DType, float32
from plugrad.tensor.base import TensorBase

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def is_narrow(dtype: DType) -> bool:
    """Whether it is a 16-bit floating point dtype, which computes in float32."""
    return dtype.itemsize == 2 and dtype.is_floating_point


def widest(dtype: DType) -> DType:
    """The dtype in which results of a dtype are computed."""
    return float32 if is_narrow(dtype) else dtype


def widened(x: TensorBase) -> Any:
    """16-bit floats as float32; other tensors as they are."""
    return F._to_copy(x, float32) if is_narrow(x.dtype) else x


def in_dtype_of(x: Tensor, like: TensorBase) -> Tensor:
    """A result in another tensor's dtype."""
    return x if x.dtype is like.dtype else F._to_copy(x, like.dtype)
