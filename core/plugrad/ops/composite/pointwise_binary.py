"""Elementwise arithmetic that is composed of other operators."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import INTEGER, DType, complex128, finfo, float64, get_default_dtype
from plugrad.ops.composite.elementwise.elementary import atan2 as atan2
from plugrad.ops.composite.elementwise.elementary import hypot as hypot
from plugrad.ops.composite.elementwise.elementary import logaddexp as logaddexp
from plugrad.ops.composite.elementwise.precision import is_narrow, widest
from plugrad.ops.composite.elementwise.rounding import divide_rounded as divide_rounded
from plugrad.ops.composite.elementwise.rounding import floor_divide as floor_divide
from plugrad.ops.composite.elementwise.rounding import floor_divide_number as floor_divide_number
from plugrad.ops.composite.elementwise.rounding import fmod_number as fmod_number
from plugrad.ops.composite.elementwise.rounding import number_floor_divide as number_floor_divide
from plugrad.ops.composite.elementwise.rounding import number_remainder as number_remainder
from plugrad.ops.composite.elementwise.rounding import remainder as remainder
from plugrad.ops.composite.elementwise.rounding import remainder_number as remainder_number
from plugrad.ops.composite.elementwise.scalars import float_beside
from plugrad.ops.composite.elementwise.scalars import number_beside as number_beside
from plugrad.ops.prepare.activation import check_real_floating
from plugrad.ops.prepare.creation import check_parts
from plugrad.ops.prepare.pointwise_binary import check_sub, rsub_scalar
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.calls.elementwise_kernels import check_alpha
from plugrad.tensor.calls.promotion import (
    float_result,
    promote_pair,
    promote_with_scalar,
    scalar_dtype,
    to_dtype,
)

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
    return F.div(self, float_beside(self, other))


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
    """The number 1 gives 1 also for a complex infinity or nan; a bool does not."""
    if self == 1 and self is not True and promote_with_scalar(exponent, self).is_complex:
        return F.ones_like(exponent, dtype=promote_with_scalar(exponent, self))
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


def divide_mode_(self: Tensor, other: Any, rounding_mode: str | None) -> Tensor:
    return self.div_(other, rounding_mode=rounding_mode)


def arctan2(self: Tensor, other: Tensor) -> Tensor:
    return F.atan2(self, other)


def arctan2_(self: Tensor, other: Tensor) -> Tensor:
    return self.atan2_(other)


def logaddexp2(self: Tensor, other: Tensor) -> Any:
    dtype = promote_pair(self, other)
    check_real_floating("logaddexp2_cpu", dtype)
    a, b = _wide(self, dtype), _wide(other, dtype)
    return to_dtype(F.logaddexp(a * math.log(2), b * math.log(2)) / math.log(2), dtype)


def _wide(self: Tensor, dtype: DType) -> Any:
    """The operand in a dtype in which intermediate results lose nothing that `dtype` holds."""
    return to_dtype(self, widest(dtype))


def xlogy(self: Tensor, other: Tensor) -> Any:
    dtype = float_result(promote_pair(self, other))
    if dtype.is_complex:
        raise not_implemented("xlogy_cpu", dtype)
    x, y = _wide(self, dtype), _wide(other, dtype)
    product = x * F.log(y)
    return to_dtype(F.where(F.isnan(y), y, F.where(F.eq(x, 0), 0.0, product)), dtype)


def xlogy_number(self: Tensor, other: Any) -> Tensor:
    return F.xlogy(self, float_beside(self, other))


def xlogy_of_number(self: Any, other: Tensor) -> Tensor:
    return F.xlogy(float_beside(other, self), other)


def copysign(self: Tensor, other: Tensor) -> Tensor:
    dtype = float_result(promote_pair(self, other))
    if dtype.is_complex:
        raise not_implemented("copysign_cpu", dtype)
    magnitude = F.abs(to_dtype(self, dtype))
    broadcast_shapes(sizes_of(self), sizes_of(other))
    return F.where(F.signbit(other), -magnitude, magnitude)


def copysign_number(self: Tensor, other: Any) -> Tensor:
    if not isinstance(other, complex):
        # Only its sign matters, not whether the dtype holds it.
        other = math.copysign(1.0, other)
    return F.copysign(self, float_beside(self, other))


def _double(self: Tensor, other: DType) -> Any:
    """In double precision, complex if one of both operands is; recorded, unlike `to_dtype`."""
    return self.to(complex128 if self.dtype.is_complex or other.is_complex else float64)


def float_power(self: Tensor, exponent: Tensor) -> Tensor:
    return F.pow(_double(self, exponent.dtype), _double(exponent, self.dtype))


def float_power_number(self: Tensor, exponent: Any) -> Tensor:
    return F.pow(_double(self, scalar_dtype(exponent)), exponent)


def float_power_of_number(self: Any, exponent: Tensor) -> Tensor:
    number = float(self) if isinstance(self, bool) else self
    return F.pow(number, _double(exponent, scalar_dtype(self)))


def float_power_(self: Tensor, exponent: Any) -> Tensor:
    is_tensor = isinstance(exponent, TensorBase)
    other: DType = exponent.dtype if is_tensor else scalar_dtype(exponent)
    dtype = complex128 if self.dtype.is_complex or other.is_complex else float64
    if self.dtype is not dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {self.dtype.scalar_name} but the "
            f"operation's result requires dtype {dtype.scalar_name}"
        )
    return self.pow_(exponent.to(dtype) if is_tensor else exponent)


def polar(abs: Tensor, angle: Tensor) -> Tensor:
    check_parts(abs, angle)
    if is_narrow(abs.dtype):
        raise not_implemented("polar_cpu", abs.dtype)
    return F.complex(abs * F.cos(angle), abs * F.sin(angle))


def ldexp(self: Tensor, other: Tensor) -> Tensor:
    exponent: Any = other
    if not other.dtype.is_differentiable:
        # In a dtype that does not widen the other operand.
        floating = self.dtype.is_differentiable
        exponent = other.to(self.dtype.to_real() if floating else get_default_dtype())
    if exponent.dtype.is_complex:
        return self * F.pow(2.0, exponent)
    # In three steps: a power beyond the dtype's largest may lead to a product that is not. Three
    # of the largest lead from any number to infinity or zero.
    most = 3.0 * (int(math.log2(finfo(exponent.dtype).max)) - 1)
    exponent = F.clamp(exponent, -most, most)
    third: Any = F.trunc(exponent / 3.0)
    power: Any = F.pow(2.0, third)
    return self * power * power * F.pow(2.0, exponent - third - third)
