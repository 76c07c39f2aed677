"""Arguments of elementwise operators of one tensor, as their raw kernels take them."""

from __future__ import annotations

from typing import Any

from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING, finfo, get_default_dtype
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.promotion import float_result, to_dtype


def imag(self: TensorBase) -> tuple[object, ...]:
    if not self.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return (self,)


def angle(self: TensorBase) -> tuple[object, ...]:
    if self.dtype.category < FLOATING:
        return (to_dtype(self, get_default_dtype()),)
    return (self,)


def nan_to_num(self: TensorBase, nan: Any, posinf: Any, neginf: Any) -> tuple[object, ...]:
    """Fills in the dtype's limits; integers have nothing to replace."""
    if self.dtype.category < FLOATING:
        return (self, 0.0, 0.0, 0.0)
    limits = finfo(self.dtype)
    return (
        self,
        0.0 if nan is None else nan,
        limits.max if posinf is None else posinf,
        limits.min if neginf is None else neginf,
    )


def logit(self: TensorBase, eps: float | None) -> tuple[object, ...]:
    dtype = float_result(self.dtype)
    if dtype.is_complex:
        raise not_implemented("logit_cpu", dtype)
    return (to_dtype(self, dtype), eps)
