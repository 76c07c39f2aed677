"""Comparisons made of others."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.ops.composite.pointwise_binary import number_beside

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
    allowed = F.abs(other * rtol) + atol
    actual = F.abs(self - other)
    return F.logical_or(close, F.logical_and(F.isfinite(actual), F.le(actual, allowed)))


def allclose(
    self: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    return bool(F.all(F.isclose(self, other, rtol, atol, equal_nan)).item())


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
