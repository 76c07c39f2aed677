"""Shapes and dtypes of decompositions of matrices. Arguments were checked by the core."""

from __future__ import annotations

# Interpreted: it computes shapes only.
from collections.abc import Callable
from typing import Any, Final

from plugrad.dtype import int32, int64
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.meta.array import MetaArray
from plugrad.tensor.meta.shapes import needs_data

Pair = tuple[MetaArray, MetaArray]
Three = tuple[MetaArray, MetaArray, MetaArray]


def like(a: MetaArray, *rest: Any) -> MetaArray:
    return a.new(a.shape)


def cholesky(a: MetaArray, upper: bool) -> Pair:
    return a.new(a.shape), a.new(a.shape[:-2], int32)


def qr(a: MetaArray, mode: str) -> Pair:
    batch, (m, n) = a.shape[:-2], a.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    return a.new((0,) if mode == "r" else (*batch, m, k)), a.new((*batch, k, n))


def geqrf(a: MetaArray) -> Pair:
    return a.new(a.shape), a.new((*a.shape[:-2], min(a.shape[-2:])))


def eigh(a: MetaArray, triangle: str, compute_v: bool) -> Pair:
    values = a.new(a.shape[:-1], a.dtype.to_real())
    return values, a.new(a.shape if compute_v else (0,))


def eig(a: MetaArray) -> Pair:
    return eigvals(a), a.new(a.shape, a.dtype.to_complex())


def eigvals(a: MetaArray) -> MetaArray:
    return a.new(a.shape[:-1], a.dtype.to_complex())


def svd(a: MetaArray, full_matrices: bool, compute_uv: bool) -> Three:
    batch, (m, n) = a.shape[:-2], a.shape[-2:]
    k = min(m, n)
    values = a.new((*batch, k), a.dtype.to_real())
    if not compute_uv:
        return a.new((0,)), values, a.new((0,))
    rows, columns = (m, n) if full_matrices else (k, k)
    return a.new((*batch, m, rows)), values, a.new((*batch, columns, n))


def lu_factor(a: MetaArray, pivot: bool) -> Three:
    batch = a.shape[:-2]
    return a.new(a.shape), a.new((*batch, min(a.shape[-2:])), int32), a.new(batch, int32)


def lu_permutation(pivots: MetaArray, rows: int) -> MetaArray:
    return pivots.new((*pivots.shape[:-1], rows), int64)


def solved(a: MetaArray, b: MetaArray, *rest: Any) -> MetaArray:
    return b.new((*broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]))


def solved_with_pivots(a: MetaArray, pivots: MetaArray, b: MetaArray, *rest: Any) -> MetaArray:
    return solved(a, b)


def slogdet(a: MetaArray) -> Pair:
    return a.new(a.shape[:-2]), a.new(a.shape[:-2], a.dtype.to_real())


def ldl_factor(a: MetaArray, hermitian: bool) -> Three:
    return a.new(a.shape), a.new(a.shape[:-1], int32), a.new(a.shape[:-2], int32)


def lstsq(a: MetaArray, b: MetaArray, rcond: float, driver: str) -> Any:
    """Whether there are residuals may depend on ranks: then their shape is unknown."""
    m, n = a.shape[-2:]
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    has_values = driver in ("gelsd", "gelss")
    if has_values and m > n:
        needs_data()
    real = a.dtype.to_real() if a.dtype.is_complex else a.dtype
    return (
        a.new((*batch, n, b.shape[-1])),
        a.new((*batch, b.shape[-1]) if driver == "gels" and m > n else (0,), real),
        a.new((0,) if driver == "gels" else batch, int64),
        a.new((*batch, min(m, n)) if has_values else (0,), real),
    )


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "_check_matrices": like,
    "linalg_inv": like,
    "_linalg_cholesky": cholesky,
    "linalg_qr": qr,
    "geqrf": geqrf,
    "_linalg_eigh": eigh,
    "linalg_eig": eig,
    "_linalg_eigvals": eigvals,
    "_linalg_svd": svd,
    "_linalg_lu_factor": lu_factor,
    "_lu_permutation": lu_permutation,
    "linalg_lu_solve": solved_with_pivots,
    "linalg_ldl_solve": solved_with_pivots,
    "linalg_solve_triangular": solved,
    "linalg_slogdet": slogdet,
    "_linalg_ldl_factor": ldl_factor,
    "_linalg_lstsq": lstsq,
}
