"""Elementwise arithmetic that is made of other operators."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dtype import INTEGER, DType, complex128, float64
from plugrad.ops.composite.elementary import atan2 as atan2
from plugrad.ops.composite.elementary import hypot as hypot
from plugrad.ops.composite.elementary import logaddexp as logaddexp
from plugrad.ops.composite.rounding import divide_rounded as divide_rounded
from plugrad.ops.composite.rounding import floor_divide as floor_divide
from plugrad.ops.composite.rounding import floor_divide_number as floor_divide_number
from plugrad.ops.composite.rounding import fmod_number as fmod_number
from plugrad.ops.composite.rounding import number_floor_divide as number_floor_divide
from plugrad.ops.composite.rounding import number_remainder as number_remainder
from plugrad.ops.composite.rounding import remainder as remainder
from plugrad.ops.composite.rounding import remainder_number as remainder_number
from plugrad.ops.composite.scalars import number_beside as number_beside
from plugrad.ops.prepare.pointwise_binary import check_sub, rsub_scalar
from plugrad.tensor.base import TensorBase
from plugrad.tensor.kernels import check_alpha
from plugrad.tensor.promotion import float_result, promote_pair, promote_with_scalar, to_dtype

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def rsub_tensor(self: Tensor, other: Tensor, alpha: Any = 1) -> Tensor:
    return F.sub(other, self, alpha=alpha)


def subtract(self: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    return F.sub(self, other, alpha=alpha)


def multiply(self: Tensor, other: Any) -> Tensor:
    return F.mul(self, other)


def divide(self: Tensor, other: Any) -> Tensor:
    return F.div(self, other)


def divide_mode(self: Tensor, other: Any, rounding_mode: str | None) -> Tensor:
    return F.div(self, other, rounding_mode=rounding_mode)


def rdiv(self: Tensor, other: Any) -> Tensor:
    return F.reciprocal(self) * other


def _wrapped(number: Any, dtype: DType) -> Any:
    """A negative number as unsigned integers represent it."""
    return number if dtype.is_signed else number % 2 ** (8 * dtype.itemsize)


def add_number(self: Tensor, other: Any, alpha: Any) -> Tensor:
    dtype = promote_with_scalar(self, other)
    check_alpha(alpha, dtype)
    return F.add(self, number_beside(self, other if alpha == 1 else other * alpha))


def mul_number(self: Tensor, other: Any) -> Tensor:
    return F.mul(self, number_beside(self, other))


def div_number(self: Tensor, other: Any) -> Tensor:
    return F.div(self, number_beside(self, other))


def sub(self: Tensor, other: Tensor, alpha: Any) -> Tensor:
    check_sub(self, other, alpha)
    # Promoted first: the negative of an int8 may need an int64.
    negated = F.neg(to_dtype(other, promote_pair(self, other)))
    return F.add(self, negated, alpha=alpha)


def sub_number(self: Tensor, other: Any, alpha: Any) -> Tensor:
    check_sub(self, other, alpha)
    dtype = promote_with_scalar(self, other)
    check_alpha(alpha, dtype)
    return F.add(self, _wrapped(-other * alpha, dtype))


def rsub_number(self: Tensor, other: Any, alpha: Any) -> Tensor:
    rsub_scalar(self, other, alpha)
    dtype = promote_with_scalar(self, other)
    subtracted = F.neg(to_dtype(self, dtype))
    if alpha != 1:
        subtracted = subtracted * alpha
    return F.add(subtracted, _wrapped(other, dtype))


def pow_number(self: Tensor, exponent: Any) -> Tensor:
    base: Any = to_dtype(self, promote_with_scalar(self, exponent))
    if base.dtype.category == INTEGER and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if exponent == 2:
        return base * base
    if exponent == 3:
        return base * base * base
    return F.pow(base, number_beside(base, exponent))


def number_pow(self: Any, exponent: Tensor) -> Tensor:
    return F.pow(number_beside(exponent, self), exponent)


def maximum(self: Tensor, other: Tensor) -> Tensor:
    return F.where(F.logical_or(F.gt(self, other), F.isnan(self)), self, other)


def minimum(self: Tensor, other: Tensor) -> Tensor:
    return F.where(F.logical_or(F.lt(self, other), F.isnan(self)), self, other)


def fmax(self: Tensor, other: Tensor) -> Tensor:
    return F.where(F.logical_or(F.gt(self, other), F.isnan(other)), self, other)


def fmin(self: Tensor, other: Tensor) -> Tensor:
    return F.where(F.logical_or(F.lt(self, other), F.isnan(other)), self, other)


def subtract_(self: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    return self.sub_(other, alpha=alpha)


def multiply_(self: Tensor, other: Any) -> Tensor:
    return self.mul_(other)


def divide_(self: Tensor, other: Any) -> Tensor:
    return self.div_(other)


def arctan2(self: Tensor, other: Tensor) -> Tensor:
    return F.atan2(self, other)


def arctan2_(self: Tensor, other: Tensor) -> Tensor:
    return self.atan2_(other)


def logaddexp2(self: Tensor, other: Tensor) -> Tensor:
    return F.logaddexp(self * math.log(2), other * math.log(2)) / math.log(2)


def xlogy(self: Tensor, other: Tensor) -> Tensor:
    # Where log(other) is no number, neither is its gradient, so it is taken of 1 there.
    infinite = F.logical_or(F.le(other, 0), F.eq(other, math.inf))
    left_out = F.logical_and(F.eq(self, 0), infinite)
    return self * F.log(F.where(left_out, 1, other))


def xlogy_number(self: Tensor, other: Any) -> Tensor:
    return xlogy(self, number_beside(self, float(other)))


def xlogy_of_number(self: Any, other: Tensor) -> Tensor:
    return xlogy(number_beside(other, float(self)), other)


def copysign(self: Tensor, other: Tensor) -> Tensor:
    magnitude = F.abs(to_dtype(self, float_result(promote_pair(self, other))))
    return F.where(F.signbit(other), -magnitude, magnitude)


def copysign_number(self: Tensor, other: Any) -> Tensor:
    return copysign(self, number_beside(self, float(other)))


def _double(self: Tensor) -> TensorBase:
    return to_dtype(self, complex128 if self.dtype.is_complex else float64)


def float_power(self: Tensor, exponent: Tensor) -> Tensor:
    return F.pow(_double(self), _double(exponent))


def float_power_number(self: Tensor, exponent: Any) -> Tensor:
    return F.pow(_double(self), exponent)


def polar(abs: Tensor, angle: Tensor) -> Tensor:
    return F.complex(abs * F.cos(angle), abs * F.sin(angle))


def ldexp(self: Tensor, other: Tensor) -> Tensor:
    return self * F.pow(2.0, other)
