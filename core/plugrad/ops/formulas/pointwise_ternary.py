"""Gradients of elementwise operators of three operands."""

# Tensor dunders may return NotImplemented, which is Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.ops.formulas.pointwise_unary import conjugate, keep_where, zero_where

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def times_conjugate(grad: Tensor, factor: Tensor) -> Tensor:
    """The gradient through a product with `factor`."""
    return grad * conjugate(factor)


def taken_where(condition: Tensor, grad: Tensor) -> Tensor:
    """The gradient of the tensor that supplies the elements where a condition holds."""
    return keep_where(condition, grad)


def left_where(condition: Tensor, grad: Tensor) -> Tensor:
    """The gradient of the tensor that had its elements replaced where a condition holds."""
    return zero_where(condition, grad)


def scaled_by(x: Tensor, factor: Any) -> Tensor:
    return x if factor == 1 else x * factor


def clamp_backward(grad: Tensor, x: Tensor, low: Any, high: Any) -> Tensor:
    """Passes between the bounds and at them; bounds are tensors, numbers or None."""
    if low is None:
        return keep_where(x <= high, grad)
    inside = x >= low
    if high is not None:
        inside = F.logical_and(inside, x <= high)
    return keep_where(inside, grad)


def clamp_backward_min(grad: Tensor, x: Tensor, low: Tensor, high: Tensor | None) -> Tensor:
    """Where the lower bound is the result: the upper one wins if they cross."""
    active = x < low
    if high is not None:
        active = F.logical_and(active, low < high)
    return keep_where(active, grad)


def clamp_backward_max(grad: Tensor, x: Tensor, low: Tensor | None, high: Tensor) -> Tensor:
    active = x > high
    if low is not None:
        active = F.logical_or(active, high < low)
    return keep_where(active, grad)
