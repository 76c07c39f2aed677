"""Automatic differentiation: `backward`, `grad`, `Function`, grad modes."""

from __future__ import annotations

from plugrad.autograd.function import Function
from plugrad.autograd.grad_mode import (
    enable_grad,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from plugrad.autograd.run_backward import backward, grad

__all__ = [
    "Function",
    "backward",
    "enable_grad",
    "grad",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]
