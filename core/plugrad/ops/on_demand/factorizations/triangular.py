"""Triangular systems, by substitution in blocks: NumPy has no solver for them."""

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import Any, Final

import numpy as np

Array = Any

# Up to here row by row; above, halves, so that most of the work is matrix products.
BLOCK: Final = 32


def solve_lower(A: Array, B: Array, unit: bool) -> Array:
    """X with A @ X = B; `A` (*, n, n) is read as lower triangular, B is (*, n, k).

    A zero on the diagonal gives inf and nan.
    """
    batch = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    X = np.array(np.broadcast_to(B, (*batch, *B.shape[-2:])), order="C")
    with np.errstate(all="ignore"):
        _substitute(A, X, unit)
    return X


def solve_triangular(A: Array, B: Array, upper: bool, left: bool = True, unit: bool = False) -> Any:
    """X with A @ X = B, or X @ A = B."""
    if not left:
        turned = solve_triangular(A.swapaxes(-1, -2), B.swapaxes(-1, -2), not upper, True, unit)
        return turned.swapaxes(-1, -2)
    if upper:
        # Rows and columns from last to first: what was upper is lower.
        return solve_lower(A[..., ::-1, ::-1], B[..., ::-1, :], unit)[..., ::-1, :]
    return solve_lower(A, B, unit)


def _substitute(A: Array, X: Array, unit: bool) -> None:
    """Overwrites X, which holds the right sides."""
    n = A.shape[-1]
    if n > BLOCK:
        half = n // 2
        _substitute(A[..., :half, :half], X[..., :half, :], unit)
        X[..., half:, :] -= A[..., half:, :half] @ X[..., :half, :]
        _substitute(A[..., half:, half:], X[..., half:, :], unit)
        return
    for i in range(n):
        if i:
            X[..., i : i + 1, :] -= A[..., i : i + 1, :i] @ X[..., :i, :]
        if not unit:
            X[..., i, :] /= A[..., i, i, None]
