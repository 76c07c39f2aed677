"""Operands of steps, divisors and neighbours, checked in PyTorch's words."""

from __future__ import annotations

from typing import Any

from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING, DType, bool_
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.promotion import promote_pair


def check_heaviside(self: Any, values: Any, alpha: Any) -> None:
    if isinstance(self, TensorBase) and isinstance(values, TensorBase):
        refuse_complex(self.dtype)
        refuse_complex(values.dtype)
        if self.dtype is not values.dtype:
            raise RuntimeError(
                "heaviside is not yet implemented for tensors with different dtypes."
            )


def refuse_complex(dtype: DType) -> None:
    if dtype.is_complex:
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")


def integral(self: TensorBase, other: TensorBase, kernel: str) -> DType:
    """The dtype of both; NotImplementedError in PyTorch's words unless it is an integer's."""
    dtype = promote_pair(self, other)
    if dtype.category >= FLOATING or dtype is bool_:
        raise not_implemented(kernel, dtype)
    return dtype


def floating(self: TensorBase, other: TensorBase, kernel: str) -> DType:
    """The dtype of both; NotImplementedError in PyTorch's words unless it is a real float's."""
    dtype = promote_pair(self, other)
    if dtype.category != FLOATING:
        raise not_implemented(kernel, dtype)
    return dtype


def check_gcd(self: Any, other: Any, alpha: Any) -> None:
    if isinstance(self, TensorBase) and isinstance(other, TensorBase):
        integral(self, other, "gcd_cpu")


def check_lcm(self: Any, other: Any, alpha: Any) -> None:
    if isinstance(self, TensorBase) and isinstance(other, TensorBase):
        integral(self, other, "lcm_cpu")


def check_nextafter(self: Any, other: Any, alpha: Any) -> None:
    if isinstance(self, TensorBase) and isinstance(other, TensorBase):
        floating(self, other, "nextafter_cpu")


def frexp(self: TensorBase) -> tuple[object, ...]:
    if self.dtype.category != FLOATING:
        raise RuntimeError("plugrad.frexp() only supports floating-point dtypes")
    return (self,)
