"""Tangents of softmax and log_softmax."""

from __future__ import annotations

# Interpreted: it is loaded when somebody uses forward mode.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def softmax_tangent(t: Tensor, output: Tensor, dim: int) -> Any:
    t = _in_dtype_of(t, output)
    return output * (t - (output * t).sum(dim=(dim,), keepdim=True))


def log_softmax_tangent(t: Tensor, output: Tensor, dim: int) -> Any:
    t = _in_dtype_of(t, output)
    return t - (output.exp() * t).sum(dim=(dim,), keepdim=True)


def softmax_backward_tangent(t: Tensor, grad_output: Tensor, output: Tensor, dim: int) -> Any:
    """The tangent of output * (grad_output - sum(output * grad_output)), along the output."""
    total = (output * grad_output).sum(dim=(dim,), keepdim=True)
    return t * (grad_output - total) - output * (t * grad_output).sum(dim=(dim,), keepdim=True)


def log_softmax_backward_tangent(t: Tensor, grad_output: Tensor, output: Tensor, dim: int) -> Any:
    """The tangent of grad_output - exp(output) * sum(grad_output), along the output."""
    return -(output.exp() * t) * grad_output.sum(dim=(dim,), keepdim=True)


def _in_dtype_of(t: Tensor, other: Tensor) -> Tensor:
    """A tangent of a half-precision input may meet a float32 output."""
    return t if t.dtype is other.dtype or t.dtype.is_complex else F._to_copy(t, other.dtype)
