"""Gradients of matrix products.

`nh` and `hn` name which factor is transposed and conjugated: nh(a, b) = a @ b.mH and
hn(a, b) = a.mH @ b. Products of these three kinds have gradients of these three kinds, so no
gradient needs a transposed view.
"""

# Tensor dunders may return NotImplemented, which is Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.ops.formulas.pointwise_unary import conjugate
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def matrix_product(a: Tensor, b: Tensor) -> Tensor:
    return C.call_mm(a, b) if len(sizes_of(a)) == 2 else C.call_bmm(a, b)


def product_nh(a: Tensor, b: Tensor) -> Tensor:
    if b.dtype is not a.dtype:  # Without elements, `bmm` takes several dtypes.
        b = F._to_copy(b, a.dtype)
    return C.call__matmul_nh(a, b)


def product_hn(a: Tensor, b: Tensor) -> Tensor:
    if a.dtype is not b.dtype:
        a = F._to_copy(a, b.dtype)
    return C.call__matmul_hn(a, b)


def outer_product(grad: Tensor, vec: Tensor) -> Tensor:
    """The gradient of a matrix that multiplied `vec`."""
    return F.outer(grad, conjugate(vec))


def dot_gradient(grad: Tensor, other: Tensor) -> Tensor:
    return grad * conjugate(other)


def vdot_gradient(grad: Tensor, other: Tensor) -> Tensor:
    """Toward the conjugated factor."""
    return conjugate(grad) * other


def scaled(grad: Tensor, factor: Any) -> Tensor:
    """The gradient of `factor * x` for a number; for 1 it is `grad` itself."""
    if factor == 1:
        return grad
    return grad * factor.conjugate()


def linear_gradients(
    input: Tensor, grad: Tensor, weight: Tensor, bias_ndim: Any, mask: tuple[bool, bool, bool]
) -> Any:
    if bias_ndim is None or bias_ndim < 2:
        return C.call_linear_backward(input, grad, weight, mask)
    # A bias with rows of its own broadcasts like any summand: the engine reduces its gradient.
    found = C.call_linear_backward(input, grad, weight, (mask[0], mask[1], False))
    return (found[0], found[1], grad)


def linear_double_backward(
    grads: Any, input: Tensor, grad_output: Tensor, weight: Tensor, mask: tuple[bool, ...]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of `linear_backward` toward input, grad_output and weight.

    It is linear in grad_output, and its cotangents for input and weight meet each other's factor,
    so that two of the three gradients are `linear_backward` of the cotangents again.
    """
    to_input: Tensor | None = grads[0]
    to_weight: Tensor | None = grads[1]
    to_bias: Tensor | None = grads[2]
    to_grad_output: Tensor | None = None
    if mask[1]:
        if to_input is not None:
            to_grad_output = F.linear(to_input, weight)
        if to_weight is not None:
            part = F.linear(input, to_weight, to_bias)
            to_grad_output = part if to_grad_output is None else to_grad_output + part
        elif to_bias is not None:
            part = to_bias.expand(sizes_of(grad_output))
            to_grad_output = part if to_grad_output is None else to_grad_output + part
    wanted = (mask[0] and to_weight is not None, mask[2] and to_input is not None, False)
    result: Any = (None, None)
    if wanted[0] or wanted[1]:
        result = C.call_linear_backward(
            input if to_input is None else to_input,
            grad_output,
            weight if to_weight is None else to_weight,
            wanted,
        )
    return (
        result[0] if wanted[0] else None,
        to_grad_output,
        result[1] if wanted[1] else None,
    )


def trace_backward(grad: Tensor, shape: tuple[int, ...]) -> Tensor:
    return grad * F.eye(shape[0], shape[1], dtype=grad.dtype, device=grad.device)
