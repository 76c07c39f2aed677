"""Elementwise arithmetic that is another operator under another name, or with operands swapped."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F

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
