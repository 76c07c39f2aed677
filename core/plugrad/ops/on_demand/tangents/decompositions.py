"""Tangents of the decompositions of matrices; dX is the tangent of X."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.ops.on_demand.formulas.decompositions import (
    check_qr,
    column_range,
    diagonal_of,
    differences,
    folded,
    half_diagonal,
    raise_without_vectors,
    row_range,
    without_diagonal,
)
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def cholesky_tangent(dA: Tensor, upper: bool, result: Tensor) -> Any:
    """L times the lower triangle of L^-1 dA L^-H, with half of its diagonal."""
    L = F.mH(result) if upper else result
    left = F.linalg_solve_triangular(L, dA, upper=False)
    inner = F.linalg_solve_triangular(F.mH(L), left, upper=True, left=False)
    found = F.matmul(L, half_diagonal(inner))
    return (F.mH(found) if upper else found), None


def qr_tangent(dA: Tensor, Q: Tensor, R: Tensor, mode: str) -> Any:
    """dQ = dA R^-1 - Q T and dR = Q^H (dA - dQ R), where T is folded from Q^H dA R^-1."""
    check_qr(Q, R, mode)
    count = min(sizes_of(Q)[-2], sizes_of(R)[-1])
    square = column_range(R, 0, count)
    ratio = F.linalg_solve_triangular(square, column_range(dA, 0, count), upper=True, left=False)
    inner = F.matmul(F.mH(Q), ratio)
    # Upper triangular, so that what remains is skew.
    T = inner.triu(1) + F.mH(inner.tril(-1)) + F.diag_embed(diagonal_of(folded(inner)))
    dQ = ratio - F.matmul(Q, T)
    if sizes_of(R)[-1] == count:
        return dQ, F.matmul(T, R)
    rest = F.matmul(F.mH(Q), column_range(dA, count) - F.matmul(dQ, column_range(R, count)))
    return dQ, F.cat([F.matmul(T, square), rest], -1)


def eigh_tangent(dA: Tensor, L: Tensor, V: Tensor, compute_v: bool) -> Any:
    if not compute_v:
        raise_without_vectors("linalg.eigvalsh")
    inner = F.matmul(F.matmul(F.mH(V), dA), V)
    dL = F.diagonal(inner, 0, -2, -1)
    dL = F.real(dL) if dL.dtype.is_complex else dL
    return dL, F.matmul(V, without_diagonal(inner / differences(L)))


def eig_tangent(dA: Tensor, L: Tensor, V: Tensor) -> Any:
    """The vectors keep their length; of the phases, one is chosen."""
    inner = F._linalg_solve(V, F.matmul(dA.to(V.dtype), V))
    dV = F.matmul(V, without_diagonal(inner / differences(L)))
    own = F.real(F.sum(V.conj() * dV, -2, True))
    return diagonal_of(inner), dV - V * own


def svd_tangent(dA: Tensor, U: Tensor, S: Tensor, Vh: Tensor, compute_uv: bool) -> Any:
    """The tangents of the first k singular vectors; the rest of full matrices is treated as
    constant."""
    if not compute_uv:
        raise_without_vectors("linalg.svdvals")
    rows, columns, count = sizes_of(U)[-2], sizes_of(Vh)[-1], sizes_of(S)[-1]
    all_U, all_Vh = U, Vh
    U, Vh = column_range(U, 0, count), row_range(Vh, 0, count)
    V = F.mH(Vh)
    from_right = F.matmul(dA, V)
    inner = F.matmul(F.mH(U), from_right)
    dS = diagonal_of(inner)
    across, down = S.unsqueeze(-2), S.unsqueeze(-1)
    squares = differences(S * S)
    turned = F.mH(inner)
    skew_U = without_diagonal((inner * across + down * turned) / squares)
    skew_V = without_diagonal((down * inner + turned * across) / squares)
    if U.dtype.is_complex:
        imaginary = F.imag(dS)
        phase = F.diag_embed(F.complex(F.zeros_like(imaginary), imaginary) / (2 * S))
        skew_U, skew_V = skew_U + phase, skew_V - phase
        dS = F.real(dS)
    dU, dV = F.matmul(U, skew_U), F.matmul(V, skew_V)
    if rows > count:
        dU = dU + (from_right - F.matmul(U, inner)) / across
    if columns > count:
        from_left = F.matmul(F.mH(dA), U)
        dV = dV + (from_left - F.matmul(V, turned)) / across
    return _padded(dU, all_U, -1), dS, _padded(F.mH(dV), all_Vh, -2)


def _padded(tangent: Tensor, result: Tensor, dim: int) -> Any:
    """With zeros for the vectors that have no tangent."""
    count = sizes_of(tangent)[dim]
    missing = sizes_of(result)[dim] - count
    if missing == 0:
        return tangent
    return F.cat([tangent, F.zeros_like(result.narrow(dim, count, missing))], dim)
