"""Comparisons composed of other operators."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.dtype import FLOATING, get_default_dtype
from plugrad.ops.composite.elementwise.bits import and_number as and_number
from plugrad.ops.composite.elementwise.bits import bitwise_and as bitwise_and
from plugrad.ops.composite.elementwise.bits import bitwise_left_shift as bitwise_left_shift
from plugrad.ops.composite.elementwise.bits import bitwise_or as bitwise_or
from plugrad.ops.composite.elementwise.bits import bitwise_right_shift as bitwise_right_shift
from plugrad.ops.composite.elementwise.bits import bitwise_xor as bitwise_xor
from plugrad.ops.composite.elementwise.bits import left_shift_number as left_shift_number
from plugrad.ops.composite.elementwise.bits import number_and as number_and
from plugrad.ops.composite.elementwise.bits import number_left_shift as number_left_shift
from plugrad.ops.composite.elementwise.bits import number_or as number_or
from plugrad.ops.composite.elementwise.bits import number_right_shift as number_right_shift
from plugrad.ops.composite.elementwise.bits import number_xor as number_xor
from plugrad.ops.composite.elementwise.bits import or_number as or_number
from plugrad.ops.composite.elementwise.bits import right_shift_number as right_shift_number
from plugrad.ops.composite.elementwise.bits import xor_number as xor_number
from plugrad.ops.composite.elementwise.scalars import number_beside
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def greater(self: Tensor, other: Any) -> Tensor:
    return F.gt(self, other)


def greater_equal(self: Tensor, other: Any) -> Tensor:
    return F.ge(self, other)


def less(self: Tensor, other: Any) -> Tensor:
    return F.lt(self, other)


def less_equal(self: Tensor, other: Any) -> Tensor:
    return F.le(self, other)


def not_equal(self: Tensor, other: Any) -> Tensor:
    return F.ne(self, other)


def isclose(
    self: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Equal, or finite and near enough: so inf is close to inf only."""
    if self.dtype is not other.dtype:
        raise RuntimeError(f"{self.dtype.scalar_name} did not match {other.dtype.scalar_name}")
    if rtol < 0:
        raise RuntimeError(f"rtol must be greater than or equal to zero, but got {rtol}")
    if atol < 0:
        raise RuntimeError(f"atol must be greater than or equal to zero, but got {atol}")
    close = F.eq(self, other)
    if equal_nan and self.dtype.is_differentiable:
        close = F.logical_or(close, F.logical_and(F.isnan(self), F.isnan(other)))
    if rtol == 0 and atol == 0:
        return close
    if self.dtype.category < FLOATING:
        # Differences of integers may have no room in their dtype.
        self, other = self.to(get_default_dtype()), other.to(get_default_dtype())
    allowed = F.abs(other * rtol) + atol
    actual = F.abs(self - other)
    return F.logical_or(close, F.logical_and(F.isfinite(actual), F.le(actual, allowed)))


def allclose(
    self: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    return bool(F.all(F.isclose(self, other, rtol, atol, equal_nan)).item())


def eq_number(self: Tensor, other: Any) -> Tensor:
    return F.eq(self, number_beside(self, other))


def lt_number(self: Tensor, other: Any) -> Tensor:
    return F.lt(self, number_beside(self, other))


def equal(self: Tensor, other: Tensor) -> bool:
    if sizes_of(self) != sizes_of(other):
        return False
    return bool(F.all(F.eq(self, other)).item())


def ne(self: Tensor, other: Any) -> Tensor:
    return F.logical_not(F.eq(self, other))


def gt(self: Tensor, other: Tensor) -> Tensor:
    return F.lt(other, self)


def gt_number(self: Tensor, other: Any) -> Tensor:
    return F.lt(number_beside(self, other), self)


def le(self: Tensor, other: Any) -> Tensor:
    # Not the opposite of `gt`: neither holds for nan.
    return F.logical_or(F.lt(self, other), F.eq(self, other))


def ge(self: Tensor, other: Any) -> Tensor:
    return F.logical_or(F.gt(self, other), F.eq(self, other))


def logical_and(self: Tensor, other: Tensor) -> Tensor:
    return F.mul(F.ne(self, False), F.ne(other, False))


def logical_or(self: Tensor, other: Tensor) -> Tensor:
    return F.logical_not(F.logical_and(F.logical_not(self), F.logical_not(other)))


def logical_xor(self: Tensor, other: Tensor) -> Tensor:
    return F.ne(F.ne(self, False), F.ne(other, False))


def isin(elements: Tensor, test_elements: Tensor, assume_unique: bool, invert: bool) -> Tensor:
    found = F.any(F.eq(F.unsqueeze(elements, -1), F.reshape(test_elements, (-1,))), -1)
    return F.logical_not(found) if invert else found


def greater_(self: Tensor, other: Any) -> Tensor:
    return self.gt_(other)


def greater_equal_(self: Tensor, other: Any) -> Tensor:
    return self.ge_(other)


def less_(self: Tensor, other: Any) -> Tensor:
    return self.lt_(other)


def less_equal_(self: Tensor, other: Any) -> Tensor:
    return self.le_(other)


def not_equal_(self: Tensor, other: Any) -> Tensor:
    return self.ne_(other)
