"""LAPACK and BLAS through SciPy, if it is installed, one matrix of a batch after the other.

SciPy is imported on first use, which takes a while. Without it the kernels decline, and the core's
decompositions run with NumPy. A row-major matrix is the transpose of a column-major one; if the
routine can use that, nothing is copied.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad.plugins.kernel_errors import matrix_error
from plugrad_cpu.numerics.threads import limit_libraries

Array = Any

# The prefixes of the routines' names, by NumPy's letters for dtypes.
PREFIXES: Final = {"f": "s", "d": "d", "F": "c", "D": "z"}
# From here on calls from Python cost less than NumPy's way of computing float32 in float64.
LARGE: Final = 48
# The number of columns that orgqr processes at once; SciPy does not expose it.
BLOCK: Final = 64
# Large matrices seldom have a reciprocal condition far above this one: a try would be in vain.
HOPELESS: Final = 1e-7
# How many rows a copy in column-major order takes at once.
ROWS: Final = 16


@functools.cache
def _module(name: str) -> Any:
    try:
        found = importlib.import_module(f"scipy.linalg.{name}")
    except ImportError:
        return None
    limit_libraries()  # it has brought a BLAS of its own
    return found


def routine(name: str, dtype: Any, module: str = "lapack") -> Callable[..., Any] | None:
    """ "getrf" for float64 is dgetrf; None without SciPy."""
    found = _module(module)
    prefix = PREFIXES.get(dtype.char)
    if found is None or prefix is None:
        return None
    function: Callable[..., Any] = getattr(found, prefix + name)
    return function


def known(name: str, dtype: Any) -> Callable[..., Any]:
    """A routine of LAPACK, where `suits` has found it."""
    found = routine(name, dtype)
    assert found is not None
    return found


def suits(a: Array) -> bool:
    """Whether matrices are large enough for SciPy to be faster than NumPy's loop over a batch."""
    return min(a.shape[-2:]) >= LARGE and a.size > 0 and _module("lapack") is not None


def is_many(count: int, n: int) -> bool:
    """Whether this many matrices are faster column by column, all of them together."""
    return count > 4 * n


def each(function: Callable[..., Any], batch: tuple[int, ...], *arrays: Array) -> tuple[Any, ...]:
    """The results of a function of matrices, for each of a batch that is not empty."""
    if not batch:
        return tuple([np.asarray(part) for part in function(*arrays)])
    found = [function(*[array[place] for array in arrays]) for place in np.ndindex(batch)]
    parts = [np.stack(part) for part in zip(*found, strict=True)]
    return tuple([part.reshape(*batch, *part.shape[1:]) for part in parts])


def work_size(query: Callable[..., Any], *args: Any, **kwargs: Any) -> list[int]:
    """The sizes of workspace that a routine requires, rounded up because float32 rounds them."""
    *sizes, _ = query(*args, **kwargs)
    return [int(np.real(size) * (1 + 1e-6)) + 1 for size in sizes]


def lu_factor(a: Array, pivot: bool) -> Any:
    getrf = routine("getrf", a.dtype)
    batch, k = a.shape[:-2], min(a.shape[-2:])
    if getrf is None or not pivot or a.size == 0 or is_many(math.prod(batch), k):
        return NotImplemented
    factors, pivots, info = each(getrf, batch, a)
    return factors, (pivots + 1).astype(np.int32), info.astype(np.int32)


def lu_solve(lu: Array, pivots: Array, b: Array, left: bool, adjoint: bool) -> Any:
    getrs = routine("getrs", lu.dtype)
    n = lu.shape[-1]
    right = b if left else b.swapaxes(-1, -2)
    batch = np.broadcast_shapes(lu.shape[:-2], b.shape[:-2])
    if getrs is None or lu.size == 0 or b.size == 0 or is_many(math.prod(batch), n):
        return NotImplemented
    # LAPACK would exchange rows that do not exist.
    if pivots.min() < 1 or pivots.max() > n:
        what = "greater or equal to 1" if pivots.min() < 1 else "smaller or equal to LU.size(-2)"
        raise RuntimeError(
            f"Pivots given to lu_solve must all be {what}. Did you properly pass the result of "
            "lu_factor?"
        )
    is_complex = lu.dtype.kind == "c"
    # From the right: A.T @ X.T = B.T, and conj(A) @ X.T = B.T for the adjoint.
    conjugated = is_complex and adjoint and not left
    kind = (2 if is_complex and left else 1) if adjoint == left else 0

    def one(factors: Array, exchanges: Array, side: Array) -> tuple[Array]:
        return (getrs(factors, exchanges, side, trans=kind)[0],)

    (out,) = each(
        one,
        batch,
        np.broadcast_to(lu, (*batch, n, n)),
        np.broadcast_to(pivots - 1, (*batch, n)),
        np.broadcast_to(right.conj() if conjugated else right, (*batch, *right.shape[-2:])),
    )
    out = out.conj() if conjugated else out
    return out if left else out.swapaxes(-1, -2)


def solve_triangular(a: Array, b: Array, upper: bool, left: bool, unit: bool) -> Any:
    trsm = routine("trsm", a.dtype, "blas")
    n = a.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if trsm is None or a.size == 0 or b.size == 0 or is_many(math.prod(batch), n):
        return NotImplemented

    def one(matrix: Array, side: Array) -> tuple[Array]:
        turned = matrix.flags.c_contiguous and n > 1
        return (
            trsm(
                1.0,
                matrix.T if turned else matrix,
                side,
                side=int(not left),
                lower=int(upper == turned),
                trans_a=int(turned),
                diag=int(unit),
            ),
        )

    matrices = np.broadcast_to(a, (*batch, n, n))
    (out,) = each(one, batch, matrices, np.broadcast_to(b, (*batch, *b.shape[-2:])))
    return out


def ldl_factor(a: Array, hermitian: bool) -> Any:
    name = "hetrf" if hermitian and a.dtype.kind == "c" else "sytrf"
    factor, query = routine(name, a.dtype), routine(name + "_lwork", a.dtype)
    if factor is None or query is None or a.size == 0:
        return NotImplemented
    (size,) = work_size(query, a.shape[-1], lower=1)

    def one(matrix: Array) -> tuple[Array, Array, int]:
        found, pivots, info = factor(matrix, lower=1, lwork=size)
        return np.tril(found), pivots, info

    factors, pivots, info = each(one, a.shape[:-2], a)
    return factors, pivots.astype(np.int32), info.astype(np.int32)


def cholesky(a: Array, upper: bool) -> Any:
    potrf = known("potrf", a.dtype)

    def one(matrix: Array) -> tuple[Array, int]:
        # Factorize the transpose, reading its other triangle, and transpose the factor.
        factor, info = potrf(matrix.T, lower=int(upper), clean=1)
        return factor.T, info

    factor, info = each(one, a.shape[:-2], a)
    if np.isnan(np.diagonal(factor, 0, -2, -1)).any():
        return NotImplemented  # Not every LAPACK reports such a pivot as not positive.
    return factor, info.astype(np.int32)


def qr(a: Array, complete: bool) -> tuple[Any, ...]:
    geqrf, query = known("geqrf", a.dtype), known("geqrf_lwork", a.dtype)
    orgqr = known("ungqr" if a.dtype.kind == "c" else "orgqr", a.dtype)
    m, n = a.shape[-2:]
    k = min(m, n)
    columns = m if complete else k
    (size,) = work_size(query, m, n)

    def one(matrix: Array) -> tuple[Array, Array]:
        packed, tau, _, _ = geqrf(matrix, lwork=size)
        # Before LAPACK overwrites what is below.
        r = np.triu(packed[:columns])
        if columns <= n:
            start = packed[:, :columns]
        else:
            start = np.zeros((m, columns), a.dtype, "F")
            start[:, :n] = packed
        return orgqr(start, tau, lwork=columns * BLOCK, overwrite_a=1)[0], r

    return each(one, a.shape[:-2], a)


def eigh(a: Array, triangle: str, compute_v: bool) -> Any:
    name = "heevd" if a.dtype.kind == "c" else "syevd"
    evd, query = known(name, a.dtype), known(name + "_lwork", a.dtype)
    lower = int(triangle == "L")
    sizes = work_size(query, a.shape[-1], compute_v=int(compute_v), lower=lower)
    options = dict(zip(("lwork", "liwork", "lrwork"), sizes, strict=False))

    def one(matrix: Array) -> tuple[Array, Array, int]:
        found: tuple[Array, Array, int] = evd(
            matrix, compute_v=int(compute_v), lower=lower, **options
        )
        return found

    values, vectors, info = each(one, a.shape[:-2], a)
    if info.any():
        return NotImplemented
    return values, vectors if compute_v else np.empty(0, a.dtype)


def svd(a: Array, full_matrices: bool, compute_uv: bool) -> Any:
    gesdd, query = known("gesdd", a.dtype), known("gesdd_lwork", a.dtype)
    options = {"compute_uv": int(compute_uv), "full_matrices": int(full_matrices)}
    (size,) = work_size(query, *a.shape[-2:], **options)

    def one(matrix: Array) -> tuple[Array, Array, Array, int]:
        found: tuple[Array, Array, Array, int] = gesdd(matrix, lwork=size, **options)
        return found

    u, s, vh, info = each(one, a.shape[:-2], a)
    if info.any():
        return NotImplemented
    return (u, s, vh) if compute_uv else (np.empty(0, a.dtype), s, np.empty(0, a.dtype))


def solve(a: Array, b: Array) -> Array:
    """LinAlgError in PyTorch's words for the first singular matrix."""
    getrf, getrs = known("getrf", a.dtype), known("getrs", a.dtype)

    def one(matrix: Array, side: Array) -> tuple[Array, int]:
        factors, pivots, info = getrf(matrix.T)
        return getrs(factors, pivots, side, trans=1)[0], info

    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    matrices = np.broadcast_to(a, (*batch, *a.shape[-2:]))
    out, info = each(one, batch, matrices, np.broadcast_to(b, (*batch, *b.shape[-2:])))
    raise_first(info, "linalg.solve")
    return out


def inv(a: Array) -> Array:
    getrf, getri = known("getrf", a.dtype), known("getri", a.dtype)
    query = known("getri_lwork", a.dtype)
    (size,) = work_size(query, a.shape[-1])

    def one(matrix: Array) -> tuple[Array, int]:
        factors, pivots, info = getrf(matrix.T)
        if info:
            # Not of the transpose: where the zero is, is part of the message.
            return matrix, getrf(matrix)[2] or info
        return getri(factors, pivots, lwork=size, overwrite_lu=1)[0].T, info

    out, info = each(one, a.shape[:-2], a)
    raise_first(info, "linalg.inv")
    return out


def log_determinant(a: Array) -> tuple[Array, Array]:
    """The sign of the determinant, or its direction, and the logarithm of its magnitude."""
    diagonal, odd = _eliminated(a)
    size = np.abs(diagonal)
    with np.errstate(divide="ignore", invalid="ignore"):
        if np.iscomplexobj(a):
            signs = np.where(size == 0, 0, diagonal / size)
        else:  # Of nan, 0.
            signs = np.where(np.isnan(diagonal), 0, np.sign(diagonal))
        sign = np.prod(signs, -1) * odd
        return sign.astype(a.dtype, copy=False), np.sum(np.log(size), -1)


def determinant(a: Array) -> Array:
    diagonal, odd = _eliminated(a)
    return (np.prod(diagonal, -1) * odd).astype(a.dtype, copy=False)


def _eliminated(a: Array) -> tuple[Array, Array]:
    """The diagonal of U of each matrix, and -1 for an odd number of exchanges."""
    getrf = known("getrf", a.dtype)
    rows = np.arange(a.shape[-1])

    def one(matrix: Array) -> tuple[Array, Array]:
        factors, pivots, _ = getrf(matrix.T)
        return factors.diagonal(), np.where((pivots != rows).sum() % 2, -1, 1)

    return each(one, a.shape[:-2], a)


@functools.cache
def _least_squares_sizes(driver: str, dtype: Any, m: int, n: int, k: int) -> list[int]:
    query = known(driver + "_lwork", dtype)
    return work_size(query, m, n, k, 0.0) if driver == "gelsy" else work_size(query, m, n, k)


def _column_major(a: Array) -> Array:
    """A copy, by a few rows at a time, which the processor's cache holds."""
    if a.shape[0] <= ROWS:
        return a.copy("F")
    out = np.empty(a.shape, a.dtype, "F")
    for start in range(0, a.shape[0], ROWS):
        out[start : start + ROWS] = a[start : start + ROWS]
    return out


def _least_squares(
    a: Array, b: Array, rcond: float, driver: str, function: Callable[..., Any], sizes: list[int]
) -> tuple[Any, ...]:
    """The solution, and below it what remains of `b`; the rank, singular values, and `info`.

    "gelsy" finds no singular values. "gels" neither, but the diagonal of its triangular factor.
    """
    m, n = a.shape
    if driver == "gelsy" and min(m, n) >= LARGE and _certainty(a, rcond) < HOPELESS:
        found = _without_pivots(a, b, rcond)
        if found is not None:
            return found, min(m, n), a.real[0, :0], 0
    side = np.zeros((max(m, n), b.shape[-1]), a.dtype, "F")
    side[:m] = b
    given = (_column_major(a), side)
    if driver == "gels":
        factor, x, info = function(*given, lwork=sizes[0], overwrite_a=1, overwrite_b=1)
        return x, n, factor.diagonal(), info
    if driver == "gelsy":
        free = np.zeros(n, np.int32)
        _, x, _, rank, info = function(*given, free, rcond, *sizes, overwrite_a=1, overwrite_b=1)
        return x, rank, a.real[0, :0], info
    if driver == "gelsd":
        x, values, rank, info = function(*given, *sizes, rcond, overwrite_a=1, overwrite_b=1)
        return x, rank, values, info
    _, x, values, rank, _, info = function(*given, rcond, *sizes, overwrite_a=1, overwrite_b=1)
    return x, rank, values, info


def _certainty(a: Array, rcond: float) -> float:
    """A matrix with a greater reciprocal condition has full rank: norms differ by a factor of the
    rank at most, and estimates by less than another 10."""
    least = max(rcond, float(np.finfo(a.dtype).eps))
    return 10.0 * float(min(a.shape)) * least


def _without_pivots(a: Array, b: Array, rcond: float) -> Array | None:
    """What "gels" finds in three quarters of the time of "gelsy", if the rank is certainly full."""
    (m, n), k = a.shape, b.shape[-1]
    sizes = _least_squares_sizes("gels", a.dtype, m, n, k)
    side = np.zeros((max(m, n), k), a.dtype, "F")
    side[:m] = b
    factor, x, info = known("gels", a.dtype)(
        _column_major(a), side, lwork=sizes[0], overwrite_a=1, overwrite_b=1
    )
    count = min(m, n)
    inverse, _ = known("trcon", a.dtype)(factor[:count, :count], uplo="U" if m >= n else "L")
    return x if info == 0 and inverse > _certainty(a, rcond) else None


def _first_dependent(a: Array, diagonal: Array) -> Array:
    """For each matrix, the number of the first column, or row of a wide one, that depends on those
    before it, or 0; 0 for a matrix of zeros, as LAPACK has it.

    LAPACK itself finds exact zeros only, which rounding seldom leaves.
    """
    size = np.abs(a).max(-2 if a.shape[-2] >= a.shape[-1] else -1)
    limit = 2 * math.sqrt(max(a.shape[-2:])) * np.finfo(a.dtype).eps
    missing = np.abs(diagonal) <= limit * size
    return np.where(missing.any(-1) & size.any(-1), missing.argmax(-1) + 1, 0)


def lstsq(a: Array, b: Array, rcond: float, driver: str) -> Any:
    # OpenBLAS is slow at "gelss", which differs in what it makes of a strange `rcond` only.
    used = "gelsd" if driver == "gelss" and 0 < rcond < 1 else driver
    function = routine(used, a.dtype)
    if a.size == 0 or b.size == 0 or function is None:
        return NotImplemented
    m, n = a.shape[-2:]
    sizes = _least_squares_sizes(used, a.dtype, m, n, b.shape[-1])
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    matrices = np.broadcast_to(a, (*batch, m, n))
    x, rank, values, info = each(
        lambda matrix, side: _least_squares(matrix, side, rcond, used, function, sizes),
        batch,
        matrices,
        np.broadcast_to(b, (*batch, *b.shape[-2:])),
    )
    if driver == "gels":
        raise_first(_first_dependent(matrices, values), "torch.linalg.lstsq")
    elif info.any() or np.isnan(values).any():
        return NotImplemented
    residuals = np.empty(0, a.real.dtype)
    if m > n and driver != "gelsy" and bool(np.all(rank == n)):
        residuals = np.sum(np.square(np.abs(x[..., n:, :])), -2)
    rank = np.empty(0, np.int64) if driver == "gels" else rank.astype(np.int64)
    if driver in ("gels", "gelsy"):
        values = np.empty(0, a.real.dtype)
    return x[..., :n, :], residuals, rank, values


def raise_first(info: Array, name: str) -> None:
    if info.any():
        first = int(np.flatnonzero(info)[0])
        raise matrix_error(name, int(info.flat[first]), first if info.ndim else None)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "_linalg_lu_factor": lu_factor,
    "linalg_lu_solve": lu_solve,
    "linalg_solve_triangular": solve_triangular,
    "_linalg_ldl_factor": ldl_factor,
    "_linalg_lstsq": lstsq,
}
