"""The Cholesky factor of each matrix of a batch, even if some of them have none."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import Any

import numpy as np

Array = Any


def cholesky(A: Array) -> tuple[Array, Array]:
    """L, and LAPACK's `info` as int32: the order of the first minor that is not positive, or 0.

    Reads the lower triangles of (*, n, n). Where there is no factor, L is what had been computed.
    """
    try:
        L = np.linalg.cholesky(A)
        # Not every LAPACK reports a pivot that is nan as not positive.
        if not np.isnan(np.diagonal(L, 0, -2, -1)).any():
            return L, np.zeros(A.shape[:-2], np.int32)
    except np.linalg.LinAlgError:
        pass
    L = np.zeros_like(A, order="C")
    info = np.zeros(A.shape[:-2], np.int32)
    # Whatever a matrix that has no factor leads to, as LAPACK's results do.
    with np.errstate(all="ignore"):
        for place in np.ndindex(info.shape):
            L[place], info[place] = _one(A[place])
    return L, info


def _one(A: Array) -> tuple[Array, int]:
    L = np.tril(A)
    for j in range(len(A)):
        pivot = L[j, j].real - np.vdot(L[j, :j], L[j, :j]).real
        if not pivot > 0:
            L[j, j] = pivot
            return L, j + 1
        L[j, j] = root = np.sqrt(pivot)
        L[j + 1 :, j] = (L[j + 1 :, j] - L[j + 1 :, :j] @ L[j, :j].conj()) / root
    return L, 0
