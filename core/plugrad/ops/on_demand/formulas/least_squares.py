"""Gradients of least squares, for matrices of full rank."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.ops.on_demand.formulas.matrix_functions import pinv_backward

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def lstsq_backward(
    grad: Tensor | None,
    grad_residuals: Tensor | None,
    A: Tensor,
    B: Tensor,
    X: Tensor,
    mask: tuple[bool, ...],
) -> tuple[Any, Any]:
    """Through X = pinv(A) B; and R = A X - B gives 2 R, for X makes the residuals least, so that
    its own change does not count."""
    to_A: Any = None
    to_B: Any = None
    if grad is not None:
        pinv = F.linalg_pinv(A)
        if mask[0]:
            to_A = pinv_backward(F.matmul(grad, F.mH(B)), pinv, A)
        if mask[1]:
            to_B = F.matmul(F.mH(pinv), grad)
    if grad_residuals is not None and grad_residuals.numel() > 0:
        scaled = (F.matmul(A, X) - B) * (2 * grad_residuals).unsqueeze(-2)
        if mask[0]:
            more = F.matmul(scaled, F.mH(X))
            to_A = more if to_A is None else to_A + more
        if mask[1]:
            to_B = -scaled if to_B is None else to_B - scaled
    return to_A, to_B
