"""Tangents of least squares; see `lstsq_backward`."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: it is loaded when somebody uses forward mode.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.ops.on_demand.tangents.matrix_functions import pinv_tangent

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def lstsq_tangent_of_matrix(t: Tensor, A: Tensor, B: Tensor, X: Tensor, residuals: Tensor) -> Any:
    dX = F.matmul(pinv_tangent(t, F.linalg_pinv(A), A), B)
    return dX, _of_residuals(F.matmul(t, X), A, B, X, residuals), None, None


def lstsq_tangent_of_right_side(
    t: Tensor, A: Tensor, B: Tensor, X: Tensor, residuals: Tensor
) -> Any:
    dX = F.matmul(F.linalg_pinv(A), t)
    return dX, _of_residuals(-t, A, B, X, residuals), None, None


def _of_residuals(change: Tensor, A: Tensor, B: Tensor, X: Tensor, residuals: Tensor) -> Any:
    """The tangent of the squared length of R = A X - B, for constant X."""
    if residuals.numel() == 0:
        return F.zeros_like(residuals)
    product = (F.matmul(A, X) - B).conj() * change
    return 2 * F.sum(F.real(product) if product.dtype.is_complex else product, -2)
