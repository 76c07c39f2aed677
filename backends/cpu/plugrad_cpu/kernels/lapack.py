"""LAPACK and BLAS through SciPy, if it is installed, one matrix of a batch after the other.

It is imported at the first use, which takes a while. Without it the kernels decline, and the core's
decompositions run, with NumPy.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

Array = Any

# Of the routines' names, by NumPy's letters for dtypes.
PREFIXES: Final = {"f": "s", "d": "d", "F": "c", "D": "z"}


@functools.cache
def _module(name: str) -> Any:
    try:
        return importlib.import_module(f"scipy.linalg.{name}")
    except ImportError:
        return None


def routine(name: str, dtype: Any, module: str = "lapack") -> Callable[..., Any] | None:
    """ "getrf" for float64 is dgetrf; None without SciPy."""
    found = _module(module)
    if found is None:
        return None
    function: Callable[..., Any] = getattr(found, PREFIXES[dtype.char] + name)
    return function


def column_major(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array whose matrices LAPACK can write into."""
    return np.empty((*shape[:-2], shape[-1], shape[-2]), dtype).swapaxes(-1, -2)


def is_many(count: int, n: int) -> bool:
    """Whether so many matrices are faster column by column, all of them at once."""
    return count > 4 * n


def lu_factor(a: Array, pivot: bool) -> Any:
    getrf = routine("getrf", a.dtype) if a.dtype.char in PREFIXES else None
    batch, (m, n) = a.shape[:-2], a.shape[-2:]
    k = min(m, n)
    if getrf is None or not pivot or 0 in a.shape or is_many(math.prod(batch), k):
        return NotImplemented
    factors = column_major(a.shape, a.dtype)
    pivots = np.empty((*batch, k), np.int32)
    info = np.empty(batch, np.int32)
    for place in np.ndindex(batch):
        factors[place], pivots[place], info[place] = getrf(a[place])
    return factors, pivots + np.int32(1), info


def lu_solve(lu: Array, pivots: Array, b: Array, left: bool, adjoint: bool) -> Any:
    getrs = routine("getrs", lu.dtype)
    n = lu.shape[-1]
    if getrs is None:
        return NotImplemented
    # LAPACK would exchange rows that are not there.
    if pivots.size and pivots.min() < 1:
        raise RuntimeError(
            "Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the "
            "result of lu_factor?"
        )
    if pivots.size and pivots.max() > n:
        raise RuntimeError(
            "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you "
            "properly pass the result of lu_factor?"
        )
    right = b if left else b.swapaxes(-1, -2)
    is_complex = lu.dtype.kind == "c"
    # From the right: A.T @ X.T = B.T, and conj(A) @ X.T = B.T for the adjoint.
    conjugated = is_complex and adjoint and not left
    right = right.conj() if conjugated else right
    transposed = adjoint == left
    kind = (2 if is_complex and left else 1) if transposed else 0
    batch = np.broadcast_shapes(lu.shape[:-2], b.shape[:-2])
    if 0 in (n, right.shape[-1]):
        out = np.empty((*batch, *right.shape[-2:]), lu.dtype)
    else:
        out = column_major((*batch, *right.shape[-2:]), lu.dtype)
        factors = np.broadcast_to(lu, (*batch, n, n))
        exchanges = np.broadcast_to(pivots - 1, (*batch, n))
        sides = np.broadcast_to(right, out.shape)
        for place in np.ndindex(batch):
            out[place] = getrs(factors[place], exchanges[place], sides[place], trans=kind)[0]
    out = out.conj() if conjugated else out
    return out if left else out.swapaxes(-1, -2)


def solve_triangular(a: Array, b: Array, upper: bool, left: bool, unit: bool) -> Any:
    trsm = routine("trsm", a.dtype, "blas")
    n = a.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if trsm is None or is_many(math.prod(batch), n):
        return NotImplemented
    out = column_major((*batch, *b.shape[-2:]), b.dtype)
    if out.size == 0:
        return out
    matrices, sides = np.broadcast_to(a, (*batch, n, n)), np.broadcast_to(b, out.shape)
    for place in np.ndindex(batch):
        matrix = matrices[place]
        # Of a row-major matrix BLAS reads the transpose, without a copy.
        turned = matrix.flags.c_contiguous and n > 1
        out[place] = trsm(
            1.0,
            matrix.T if turned else matrix,
            sides[place],
            side=int(not left),
            lower=int(upper == turned),
            trans_a=int(turned),
            diag=int(unit),
        )
    return out


def _sytrf(dtype: Any, hermitian: bool) -> str:
    return "he" if hermitian and dtype.kind == "c" else "sy"


def ldl_factor(a: Array, hermitian: bool) -> Any:
    name = _sytrf(a.dtype, hermitian)
    factor = routine(name + "trf", a.dtype)
    workspace = routine(name + "trf_lwork", a.dtype)
    n = a.shape[-1]
    if factor is None or workspace is None or n == 0:
        return NotImplemented
    size = int(np.real(workspace(n, lower=1)[0]))
    factors = column_major(a.shape, a.dtype)
    pivots = np.empty(a.shape[:-1], np.int32)
    info = np.empty(a.shape[:-2], np.int32)
    for place in np.ndindex(info.shape):
        found, pivots[place], info[place] = factor(a[place], lower=1, lwork=size)
        factors[place] = np.tril(found)
    return factors, pivots, info


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "_linalg_lu_factor": lu_factor,
    "linalg_lu_solve": lu_solve,
    "linalg_solve_triangular": solve_triangular,
    "_linalg_ldl_factor": ldl_factor,
}
