"""Gradients of mantissas, and operators without a gradient."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from plugrad._generated import functions as F

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def frexp_backward(grad: Tensor, exponent: Tensor) -> Tensor:
    return F.ldexp(grad, -exponent)


def not_implemented(name: str) -> NoReturn:
    """PyTorch's message for an operator without an entry."""
    raise RuntimeError(f"derivative for plugrad::{name} is not implemented")
