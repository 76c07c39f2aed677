"""Signs, magnitudes, rounding and remainders from comparisons, `floor` and `fmod`."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import BOOL, COMPLEX, FLOATING, DType
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.ops.composite.elementwise.scalars import digits_of, number_beside, widest_float
from plugrad.ops.prepare import pointwise_binary as prepare
from plugrad.ops.prepare import pointwise_unary as prepare_unary
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.promotion import promote_pair, to_dtype

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def _refuse(kernel: str, dtype: DType) -> None:
    raise not_implemented(kernel, dtype)


def absolute_value(self: Tensor) -> Tensor:
    if self.dtype.category == BOOL:
        _refuse("abs_cpu", self.dtype)
    if self.dtype.is_complex:
        return F.hypot(F.real(self), F.imag(self))
    # 0 - -0.0 is 0.0.
    return F.where(F.le(self, 0), 0 - self, self)


def sign(self: Tensor) -> Tensor:
    if self.dtype.is_complex:
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. "
            "Please use torch.sgn instead."
        )
    if self.dtype.category == BOOL:
        return self.clone()
    zero = F.zeros((), dtype=self.dtype, device=self.device)
    # Both are false for nan, so its sign is 0.
    return F.where(F.lt(zero, self), 1, F.where(F.lt(self, zero), -1, zero))


def sgn(self: Tensor) -> Tensor:
    if not self.dtype.is_complex:
        return F.sign(self)
    size = F.abs(self)
    return F.where(F.eq(size, 0), 0.0, self / size)


def _whole(self: Tensor, kernel: str) -> bool:
    """Whether the numbers are integers anyway; NotImplementedError if they are not real numbers."""
    if self.dtype.category == BOOL or self.dtype.category == COMPLEX:
        _refuse(kernel, self.dtype)
    return self.dtype.category < FLOATING


def ceil(self: Tensor) -> Tensor:
    return self.clone() if _whole(self, "ceil_vml_cpu") else -F.floor(-self)


def trunc(self: Tensor) -> Tensor:
    if _whole(self, "trunc_vml_cpu"):
        return self.clone()
    return F.where(F.lt(self, 0), F.ceil(self), F.floor(self))


def frac(self: Tensor) -> Tensor:
    if self.dtype.category != FLOATING:
        _refuse("frac_cpu", self.dtype)
    return self - F.trunc(self)


def round_to_even(self: Tensor) -> Tensor:
    if _whole(self, "round_vml_cpu"):
        return self.clone()
    below = F.floor(self)
    rest = self - below
    odd = F.ne(F.floor(below * 0.5) * 2, below)
    up = F.logical_or(F.gt(rest, 0.5), F.logical_and(F.eq(rest, 0.5), odd))
    nearest = F.where(up, below + 1, below)
    # -0.3 becomes -0.0.
    return F.where(F.eq(nearest, 0), self * 0, nearest)


def round_decimals(self: Tensor, decimals: int) -> Tensor:
    if self.dtype.category != FLOATING:
        _refuse("round_cpu", self.dtype)
    scale = float(f"1e{abs(decimals)}")
    x = widened(self)
    scaled = F.round(x / scale) * scale if decimals < 0 else F.round(x * scale) / scale
    return in_dtype_of(scaled, self)


def _operands(self: Tensor, other: Tensor, kernel: str) -> tuple[Any, Any]:
    dtype = promote_pair(self, other)
    if dtype.category == BOOL or dtype.category == COMPLEX:
        _refuse(kernel, dtype)
    return to_dtype(self, dtype), to_dtype(other, dtype)


def fmod_number(self: Tensor, other: Any) -> Tensor:
    return F.fmod(self, number_beside(self, other))


def remainder(self: Tensor, other: Tensor) -> Tensor:
    a, b = _operands(self, other, "remainder_cpu")
    rest = F.fmod(a, b)
    other_sign = F.logical_and(F.ne(rest, 0), F.ne(F.lt(rest, 0), F.lt(b, 0)))
    return F.where(other_sign, rest + b, rest)


def remainder_number(self: Tensor, other: Any) -> Tensor:
    return F.remainder(self, number_beside(self, other))


def number_remainder(self: Any, other: Tensor) -> Tensor:
    return F.remainder(number_beside(other, self), other)


def floor_divide(self: Tensor, other: Tensor) -> Tensor:
    a, b = _operands(self, other, "div_floor_cpu")
    if a.dtype.category < FLOATING:
        return _floored_quotient(a, b)
    return _floored(a, b)


def _floored(a: Any, b: Any) -> Any:
    """By the remainder, which is exact: a quotient that is rounded up may be one too large."""
    rest = F.fmod(a, b)
    whole = (a - rest) / b
    downward = F.logical_and(F.ne(rest, 0), F.ne(F.lt(rest, 0), F.lt(b, 0)))
    whole = F.where(downward, whole - 1, whole)
    below = F.floor(whole)
    nearest = F.where(F.gt(whole - below, 0.5), below + 1, below)
    quotient = a / b
    # A zero has the sign of the quotient, and infinities are where the divisor is zero.
    nearest = F.where(F.eq(whole, 0), quotient * 0, nearest)
    return F.where(F.eq(b, 0), quotient, nearest)


def _floored_quotient(a: Any, b: Any) -> Any:
    """The floored quotient of integers, by floating point division that is corrected until exact.

    RuntimeError if one is divided by zero.
    """
    if bool(F.any(F.eq(b, 0)).item()):
        raise RuntimeError("ZeroDivisionError")
    wide = widest_float(a.device)
    digits = digits_of(wide)
    bits = 8 * a.dtype.itemsize
    quotient = _estimate(a, b, wide)
    if bits <= digits:
        return quotient
    # Each round gets as many bits right as the quotient of floats has, less what rounding costs.
    wrong = bits - (digits - 2)
    while wrong > 0:
        quotient = quotient + _estimate(a - quotient * b, b, wide)
        wrong -= digits - 2
    rest = a - quotient * b
    negative = F.lt(b, 0)
    too_large = F.logical_and(F.ne(rest, 0), F.ne(F.lt(rest, 0), negative))
    too_small = F.where(negative, F.le(rest, b), F.ge(rest, b))
    return quotient + F.where(too_large, -1, F.where(too_small, 1, F.zeros_like(rest)))


def _estimate(a: Any, b: Any, wide: DType) -> Any:
    quotient = F.floor(F.div(to_dtype(a, wide), to_dtype(b, wide)))
    return to_dtype(quotient, a.dtype)


def floor_divide_number(self: Tensor, other: Any) -> Tensor:
    return F.floor_divide(self, number_beside(self, other))


def number_floor_divide(self: Any, other: Tensor) -> Tensor:
    return F.floor_divide(number_beside(other, self), other)


def divide_rounded(self: Tensor, other: Any, rounding_mode: str | None) -> Tensor:
    checked: Any = prepare.div_mode(self, other, rounding_mode)
    a, b, _ = checked
    if not isinstance(b, TensorBase):
        b = number_beside(a, b)
    if rounding_mode is None:
        return F.div(a, b)
    if rounding_mode == "floor":
        return F.floor_divide(a, b)
    if a.dtype.category == BOOL or a.dtype.category == COMPLEX:
        _refuse("div_trunc_cpu", a.dtype)
    if a.dtype.category == FLOATING:
        return F.trunc(F.div(a, b))
    quotient = _floored_quotient(a, b)
    upward = F.logical_and(F.ne(quotient * b, a), F.ne(F.lt(a, 0), F.lt(b, 0)))
    return F.where(upward, quotient + 1, quotient)


def nan_to_num(self: Tensor, nan: Any, posinf: Any, neginf: Any) -> Tensor:
    checked: Any = prepare_unary.nan_to_num(self, nan, posinf, neginf)
    _, instead, most, least = checked
    if self.dtype.category < FLOATING:
        return self.clone()
    if self.dtype.category == COMPLEX:
        real = nan_to_num(F.real(self), nan, posinf, neginf)
        imag = nan_to_num(F.imag(self), nan, posinf, neginf)
        return _of_parts(real, imag, self.dtype)
    result = F.where(F.eq(self, math.inf), most, F.where(F.isnan(self), instead, self))
    return F.where(F.eq(self, -math.inf), least, result)


def _of_parts(real: Tensor, imag: Tensor, dtype: DType) -> Tensor:
    """Complex numbers of their parts, without views, which some backends do not have. A product
    with 1j would spoil the other part of a number that is not finite; a sum does not."""
    finite = F.where(F.isfinite(imag), imag, 0.0)
    whole: Any = to_dtype(finite, dtype)
    result: Any = whole * 1j + to_dtype(real, dtype)
    for value in (math.inf, -math.inf):
        result = F.where(F.eq(imag, value), result + complex(0.0, value), result)
    return F.where(F.isnan(imag), result + complex(0.0, math.nan), result)
