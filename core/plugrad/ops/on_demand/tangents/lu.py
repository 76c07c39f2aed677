"""Tangents of LU decompositions and of results computed through them; dX is the tangent of X."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.ops.on_demand.formulas.decompositions import column_range, row_range
from plugrad.ops.on_demand.formulas.lu import packed, permuted, permuted_back, solve_unit_lower
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def lu_factor_tangent(dA: Tensor, LU: Tensor, pivots: Tensor) -> Any:
    """With M = L^-1 P^H dA U^-1: dL = L tril(M, -1) and dU = triu(M) U."""
    rows, columns = sizes_of(LU)[-2:]
    k = min(rows, columns)
    dA = permuted_back(pivots, dA)
    square = column_range(row_range(LU, 0, k), 0, k)
    U = square.triu()
    L = square.tril(-1) + F.eye(k, dtype=LU.dtype, device=LU.device)
    half = solve_unit_lower(L, column_range(row_range(dA, 0, k), 0, k))
    inner = F.linalg_solve_triangular(U, half, upper=True, left=False)
    dL, dU = F.matmul(L, inner.tril(-1)), F.matmul(inner.triu(), U)
    found: Any = packed(dL, dU)
    if rows > k:
        change = row_range(dA, k) - F.matmul(row_range(LU, k), dU)
        below = F.linalg_solve_triangular(U, change, upper=True, left=False)
        found = F.cat([found, below], -2)
    if columns > k:
        change = column_range(dA, k) - F.matmul(dL, column_range(LU, k))
        found = F.cat([found, solve_unit_lower(L, change)], -1)
    return found


def lu_solve_tangent(
    dLU: Tensor, LU: Tensor, pivots: Tensor, X: Tensor, left: bool, adjoint: bool
) -> Any:
    identity = F.eye(sizes_of(LU)[-1], dtype=LU.dtype, device=LU.device)
    L = LU.tril(-1) + identity
    dA = permuted(pivots, F.matmul(dLU.tril(-1), LU.triu()) + F.matmul(L, dLU.triu()))
    if adjoint:
        dA = F.mH(dA)
    moved = F.matmul(dA, X) if left else F.matmul(X, dA)
    return -F.linalg_lu_solve(LU, pivots, moved, left=left, adjoint=adjoint)


def slogdet_tangent(dA: Tensor, A: Tensor, sign: Tensor) -> Any:
    trace = (F.linalg_inv_ex(A)[0] * dA.transpose(-2, -1)).sum(dim=(-2, -1))
    if not A.dtype.is_complex:
        return None, trace
    turned = F.imag(trace)
    return F.complex(F.zeros_like(turned), turned) * sign, F.real(trace)
