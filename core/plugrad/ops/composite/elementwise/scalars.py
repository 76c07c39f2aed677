"""Numbers as tensors, for backends with kernels that take only tensors, and the dtype they compute
in."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.device import Device
from plugrad.dispatch.backends.active import find_backend
from plugrad.dtype import DType, finfo, float32, float64
from plugrad.tensor.calls.promotion import float_result, promote_with_scalar

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def number_beside(self: Tensor, number: Any) -> Tensor:
    """A number as a 0-dim tensor, in the dtype in which it is combined with `self`."""
    dtype = promote_with_scalar(self, number)
    return F.full((), number, dtype=dtype, device=self.device)


def float_beside(self: Tensor, number: Any) -> Tensor:
    """The same where the result is floating: the number need not fit the dtype of `self`."""
    dtype = float_result(promote_with_scalar(self, number))
    if not isinstance(number, complex) and abs(number) > finfo(dtype).max:
        number = math.copysign(math.inf, number)
    return F.full((), number, dtype=dtype, device=self.device)


def widest_float(device: Device) -> DType:
    """float64, or float32 where the backend has no other."""
    try:
        find_backend(device.type).backend.native_dtype(float64)
    except TypeError:
        return float32
    return float64


def digits_of(dtype: DType) -> int:
    """How many bits an integer may have that float32 or float64 holds exactly."""
    return 53 if dtype is float64 else 24
