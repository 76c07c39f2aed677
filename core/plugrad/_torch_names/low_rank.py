"""Singular values and principal components of matrices of low rank, by random projections.

Source: Halko, Martinsson and Tropp, "Finding structure with randomness: probabilistic algorithms
for constructing approximate matrix decompositions", 2009.
"""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.annotations import explains

if TYPE_CHECKING:
    from plugrad import Tensor


def _basis(A: Any, q: int, niter: int) -> Any:
    """An orthonormal basis of about what a matrix maps to: algorithm 4.4."""
    drawn = F.randn((A.shape[-1], q), dtype=A.dtype, device=A.device)
    Q = F.linalg_qr(F.matmul(A, drawn))[0]
    for _ in range(niter):
        Q = F.linalg_qr(F.matmul(F.mH(A), Q))[0]
        Q = F.linalg_qr(F.matmul(A, Q))[0]
    return Q


@explains
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Any = None) -> Any:
    """About the `q` greatest singular values of a matrix, and their vectors.

    (*, m, n) gives U (*, m, q), S (*, q) and V (*, n, q) with A close to U @ diag(S) @ V.mH.

    Args:
        q: how many singular values; somewhat more than the rank.
        niter: how many rounds make the result more precise.
        M: what is subtracted from `A` first, of its shape, or (*, 1, n).

    Raises:
        RuntimeError: `A` has fewer than two dimensions, or another dtype than float32, float64 and
            their complex ones.

    >>> import plugrad
    >>> U, S, V = plugrad.svd_lowrank(plugrad.ones(4, 3), q=2)
    >>> S.shape, V.shape
    (plugrad.Size([2]), plugrad.Size([3, 2]))
    """
    matrix: Any = A
    q = 6 if q is None else q
    niter = 2 if niter is None else niter
    if M is not None:
        shift: Any = M
        matrix = matrix - shift.broadcast_to(matrix.shape)
    rows, columns = matrix.shape[-2:]
    turned = rows < columns
    if turned:
        matrix = F.mH(matrix)
    Q = _basis(matrix, q, niter)
    inner, S, Vh = F.linalg_svd(F.matmul(F.mH(Q), matrix), False)
    U, V = F.matmul(Q, inner), F.mH(Vh)
    return (V, S, U) if turned else (U, S, V)


@explains
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """About the `q` first principal components of observations, which are the rows of a matrix.

    (*, m, n) gives U (*, m, q), S (*, q) and V (*, n, q); the columns of V are the directions.

    Args:
        q: how many; by default min(6, m, n).
        center: whether the means of the columns are subtracted first.
        niter: how many rounds make the result more precise.

    Raises:
        ValueError: `q` is negative or more than min(m, n), or `niter` is negative.

    >>> import plugrad
    >>> x = plugrad.tensor([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]])
    >>> U, S, V = plugrad.pca_lowrank(x, q=1)
    >>> (V[1] / V[0]).round()
    tensor([2.])
    """
    matrix: Any = A
    if not isinstance(A, TensorBase):
        raise TypeError(f"pca_lowrank(): argument 'A' must be Tensor, not {type(A).__name__}")
    rows, columns = matrix.shape[-2:]
    if q is None:
        q = min(6, rows, columns)
    elif not 0 <= q <= min(rows, columns):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)="
            f"{min(rows, columns)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if center:
        matrix = matrix - matrix.mean(dim=(-2,), keepdim=True)
    return svd_lowrank(matrix, q, niter)
