"""Gradients of pseudo-inverses and matrix exponentials."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def pinv_backward(grad: Tensor, pinv: Tensor, A: Tensor) -> Any:
    """Source: Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least
    squares problems whose variables separate", 1973, equation 4.12."""
    turned, grad_h = F.mH(pinv), F.mH(grad)
    inside = -F.matmul(turned, F.matmul(grad, turned))
    # Only the two factors that the ranks do not make zero are computed.
    right = F.matmul(grad_h, pinv)
    behind = F.matmul(right - F.matmul(A, F.matmul(pinv, right)), turned)
    left = F.matmul(pinv, grad_h)
    before = F.matmul(turned, left - F.matmul(F.matmul(left, pinv), A))
    return inside + behind + before


def matrix_exp_of_block(A: Tensor, direction: Tensor) -> Any:
    """The derivative of the exponential at `A` in a direction: a block of a larger matrix's
    exponential.

    Source: Higham, "Functions of Matrices", 2008, equation 10.46.
    """
    n = sizes_of(A)[-1]
    above = F.cat([A, direction], -1)
    below = F.cat([F.zeros_like(A), A], -1)
    whole = F.linalg_matrix_exp(F.cat([above, below], -2))
    return whole.narrow(-2, 0, n).narrow(-1, n, n)
