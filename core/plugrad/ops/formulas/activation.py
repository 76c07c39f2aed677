"""Gradients of activation functions, and of those gradients."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.dtype import DType
from plugrad.ops.formulas.pointwise_unary import keep_where, zero_where

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

# sqrt(2 / pi) and the cubic's coefficient of the tanh approximation of gelu.
GELU_SCALE: Final = math.sqrt(2.0 / math.pi)
GELU_CUBIC: Final = 0.044715


def threshold_gradient(grad: Tensor, x: Tensor, threshold: Any) -> Tensor:
    return C.call_threshold_backward(grad, x, threshold)


def hardtanh_gradient(grad: Tensor, x: Tensor, min_val: Any, max_val: Any) -> Tensor:
    return C.call_hardtanh_backward(grad, x, min_val, max_val)


def gelu_gradient(grad: Tensor, x: Tensor, approximate: str) -> Tensor:
    return C.call_gelu_backward(grad, x, approximate)


def gelu_double_backward(grad: Tensor, grad_output: Tensor, x: Tensor, approximate: str) -> Tensor:
    """gelu'' = pdf(x) * (2 - x^2); the approximation's by the product rule."""
    if approximate == "none":
        density = (x * x * -0.5).exp() * (1.0 / math.sqrt(2.0 * math.pi))
        return grad * grad_output * density * (2.0 - x * x)
    inner = (x + x * x * x * GELU_CUBIC) * GELU_SCALE
    slope = (x * x * (3.0 * GELU_CUBIC) + 1.0) * GELU_SCALE
    curvature = x * (6.0 * GELU_CUBIC * GELU_SCALE)
    t = inner.tanh()
    second = (1.0 - t * t) * (slope + x * (curvature - t * slope * slope * 2.0) * 0.5)
    return grad * grad_output * second


def silu_double_backward(grad: Tensor, grad_output: Tensor, x: Tensor) -> Tensor:
    s = x.sigmoid()
    second = s * (1.0 - s) * (x * (1.0 - s * 2.0) + 2.0)
    # The gradient depends on the conjugate of a complex x.
    return grad.conj() * grad_output * second.conj()


def softplus_double_backward(
    grad: Tensor, grad_output: Tensor, x: Tensor, beta: Any, threshold: Any
) -> Tensor:
    s = (x * beta).sigmoid()
    return zero_where(x * beta > threshold, grad * grad_output * s * (1.0 - s) * beta)


def elu_double_backward(
    grad: Tensor,
    grad_output: Tensor,
    alpha: Any,
    scale: Any,
    input_scale: Any,
    is_result: bool,
    x: Tensor,
) -> Tensor:
    product = grad * grad_output * input_scale
    if not is_result:
        product = product * (x * input_scale).exp() * (input_scale * alpha * scale)
    return keep_where(x < 0, product)


def log_sigmoid_backward(grad: Tensor, x: Tensor) -> Tensor:
    return grad * (-x).sigmoid()


def softmax_gradient(grad: Tensor, output: Tensor, dim: int, dtype: DType) -> Tensor:
    return C.call__softmax_backward_data(grad, output, dim, dtype)


def log_softmax_gradient(grad: Tensor, output: Tensor, dim: int, dtype: DType) -> Tensor:
    return C.call__log_softmax_backward_data(grad, output, dim, dtype)


def softmax_double_backward(grad: Tensor, grad_output: Tensor, output: Tensor, dim: int) -> Tensor:
    """Toward the softmax: the gradient is output * (grad_output - sum(output * grad_output))."""
    grad = _in_dtype_of(grad, output)
    total = (output * grad_output).sum(dim=(dim,), keepdim=True)
    return grad_output * (grad - (output * grad).sum(dim=(dim,), keepdim=True)) - total * grad


def log_softmax_backward_gradient(grad: Tensor, output: Tensor, dim: int) -> Tensor:
    grad = _in_dtype_of(grad, output)
    return grad - (grad * output.exp()).sum(dim=(dim,), keepdim=True)


def log_softmax_double_backward(
    grad: Tensor, grad_output: Tensor, output: Tensor, dim: int
) -> Tensor:
    grad = _in_dtype_of(grad, output)
    return -grad_output.sum(dim=(dim,), keepdim=True) * output.exp() * grad


def _in_dtype_of(grad: Tensor, other: Tensor) -> Tensor:
    """A gradient of a half-precision input may meet a float32 output."""
    return grad if grad.dtype is other.dtype else F._to_copy(grad, other.dtype)


def hardsigmoid_gradient(grad: Tensor, x: Tensor) -> Tensor:
    """1 / 6 between the limits; 0 for nan."""
    return C.call_hardtanh_backward(zero_where(F.isnan(x), grad / 6), x, -3, 3)


def hardswish_gradient(grad: Tensor, x: Tensor) -> Tensor:
    """x / 3 + 1 / 2 between the limits, 0 below, 1 above and for nan."""
    inside = F.where(x < 3, grad * (x / 3 + 0.5), grad)
    return zero_where(x <= -3, inside)
