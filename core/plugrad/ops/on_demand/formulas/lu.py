"""Gradients of LU decompositions A = P L U, and of what is computed through them."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.ops.on_demand.formulas.decompositions import column_range, row_range
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def solve_unit_lower(L: Tensor, X: Tensor) -> Tensor:
    return F.linalg_solve_triangular(L, X, upper=False, unitriangular=True)


def permuted(pivots: Tensor, X: Tensor) -> Tensor:
    """P @ X"""
    order = F._lu_permutation(pivots, sizes_of(X)[-2])
    # P has ones at (order[j], j): row order[j] of the result is row j of X.
    return F.gather(X, -2, _rows(F.argsort(order, -1), X))


def permuted_back(pivots: Tensor, X: Tensor) -> Tensor:
    """P.mT @ X"""
    return F.gather(X, -2, _rows(F._lu_permutation(pivots, sizes_of(X)[-2]), X))


def _rows(order: Tensor, X: Tensor) -> Tensor:
    return order.unsqueeze(-1).expand(sizes_of(X))


def packed(lower: Tensor, upper: Tensor) -> Tensor:
    """The part below the diagonal of the first, and the rest of the second."""
    return lower.tril(-1) + upper.triu()


def lu_factor_backward(grad: Tensor | None, LU: Tensor, pivots: Tensor) -> Tensor | None:
    """P L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H for a square matrix. For the parts below or
    right of it, L2 = A2 U^-1 and U2 = L^-1 A2."""
    if grad is None:
        return None
    rows, columns = sizes_of(LU)[-2:]
    k = min(rows, columns)
    square, g_square = (
        column_range(row_range(LU, 0, k), 0, k),
        column_range(row_range(grad, 0, k), 0, k),
    )
    L, U = square.tril(-1), square.triu()
    identity = F.eye(k, dtype=LU.dtype, device=LU.device)
    L = L + identity
    gL, gU = g_square.tril(-1), g_square.triu()
    below: Any = None
    right: Any = None
    if rows > k:
        below = F.linalg_solve_triangular(F.mH(U), row_range(grad, k), upper=False, left=False)
        gU = gU - F.matmul(F.mH(row_range(LU, k)), below)
    if columns > k:
        right = F.linalg_solve_triangular(
            F.mH(L), column_range(grad, k), upper=True, unitriangular=True
        )
        gL = gL - F.matmul(right, F.mH(column_range(LU, k)))
    inner = packed(F.matmul(F.mH(L), gL), F.matmul(gU, F.mH(U)))
    left = F.linalg_solve_triangular(F.mH(L), inner, upper=True, unitriangular=True)
    found = F.linalg_solve_triangular(F.mH(U), left, upper=False, left=False)
    if below is not None:
        found = F.cat([found, below], -2)
    if right is not None:
        found = F.cat([found, right], -1)
    return permuted(pivots, found)


def lu_solve_backward(
    grad: Tensor,
    LU: Tensor,
    pivots: Tensor,
    X: Tensor,
    left: bool,
    adjoint: bool,
    mask: tuple[bool, ...],
) -> tuple[Tensor | None, Tensor | None]:
    """gB solves the system with the adjoint; gA is minus a product of gB and X. The factors'
    gradient is tril(P^H gA U^H, -1) + triu(L^H P^H gA)."""
    gB = F.linalg_lu_solve(LU, pivots, grad, left=left, adjoint=not adjoint)
    if not mask[0]:
        return None, gB
    first, second = (gB, F.mH(X)) if left else (F.mH(X), gB)
    product = F.matmul(F.mH(second), F.mH(first)) if adjoint else F.matmul(first, second)
    # Batches of B that the factors lack are added up first.
    product = product.sum_to_size(sizes_of(LU)) if sizes_of(product) != sizes_of(LU) else product
    inner = -permuted_back(pivots, product)
    U = LU.triu()
    L = LU.tril(-1) + F.eye(sizes_of(LU)[-1], dtype=LU.dtype, device=LU.device)
    return packed(F.matmul(inner, F.mH(U)), F.matmul(F.mH(L), inner)), gB


def slogdet_backward(
    g_sign: Tensor | None, g_log: Tensor | None, A: Tensor, sign: Tensor
) -> Tensor | None:
    """(g_log + i im(g_sign conj(sign))) A^-H; the sign of a real matrix has no gradient."""
    scale: Any = g_log
    if A.dtype.is_complex and g_sign is not None:
        turned = F.imag(g_sign * sign.conj())
        scale = F.complex(F.zeros_like(turned) if g_log is None else g_log, turned)
    if scale is None:
        return None
    return scale.unsqueeze(-1).unsqueeze(-1) * F.mH(F.linalg_inv_ex(A)[0])
