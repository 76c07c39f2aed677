"""Gradients of solutions, inverses and determinants.

Source: Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation", 2008, sections 2.2 and 2.3.
"""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plugrad._generated import functions as F
from plugrad.dtype import int64
from plugrad.tensor.base import sizes_of
from plugrad.tensor.interop.arrays import from_host

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def solve_backward(
    grad: Tensor, A: Tensor, result: Tensor, mask: tuple[bool, ...]
) -> tuple[Tensor | None, Tensor]:
    to_right = F._linalg_solve(F.mH(A), grad)
    if not mask[0]:
        return None, to_right
    return -F.matmul(to_right, F.mH(result)), to_right


def inv_backward(grad: Tensor, result: Tensor) -> Tensor:
    turned = F.mH(result)
    return -F.matmul(turned, F.matmul(grad, turned))


def det_backward(grad: Tensor, A: Tensor, result: Tensor) -> Tensor:
    inverse = inverse_if_regular(A)
    if inverse is None:
        return grad.unsqueeze(-1).unsqueeze(-1) * cofactors(A).conj()
    scale = (grad * result.conj()).unsqueeze(-1).unsqueeze(-1)
    return scale * F.mH(inverse)


def inverse_if_regular(A: Tensor) -> Tensor | None:
    """The inverse of each matrix; None if one of them has none."""
    try:
        return F.linalg_inv(A)
    except RuntimeError as error:
        if "singular" not in str(error):
            raise
    return None


def cofactors(A: Tensor) -> Tensor:
    """The determinant's derivative for any matrix: for each element, the signed determinant of the
    matrix without its row and column.

    It consists of determinants, so derivatives of any order are correct for any rank. It
    needs n ** 4 elements.
    """
    n = sizes_of(A)[-1]
    batch = sizes_of(A)[:-2]
    left = np.array([[j for j in range(n) if j != i] for i in range(n)], np.int64).reshape(-1)
    kept = from_host(left, int64, A.device)
    rows = A.index_select(-2, kept).reshape((*batch, n, n - 1, n))
    both = rows.index_select(-1, kept).reshape((*batch, n, n - 1, n, n - 1))
    minors = F.linalg_det(both.transpose(-3, -2))
    signs = (-1.0) ** np.add.outer(np.arange(n), np.arange(n))
    return minors * from_host(np.asarray(signs, A.dtype.numpy), A.dtype, A.device)
