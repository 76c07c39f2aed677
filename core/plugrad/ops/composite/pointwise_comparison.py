"""Comparisons made of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F

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
