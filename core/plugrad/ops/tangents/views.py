"""Tangents of views by strides."""

from __future__ import annotations

# Interpreted: it is loaded when somebody uses forward mode.
from typing import TYPE_CHECKING

from plugrad._generated import calls as C
from plugrad.tensor.aliasing.layout import storage_offset, strides
from plugrad.tensor.base import TensorBase

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Sizes = tuple[int, ...]


def as_strided_tangent(
    t: Tensor, size: Sizes, stride: Sizes, offset: int, input_offset: int
) -> TensorBase:
    """The same places in the memory of a tangent, which has its tensor's layout but may start at
    another offset."""
    own = storage_offset(t)
    return C.call__as_strided(t, size, stride, offset - input_offset + own, strides(t), own)
