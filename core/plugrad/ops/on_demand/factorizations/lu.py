"""LU with partial pivoting, column by column within blocks; permutations from pivots."""

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from typing import Any, Final

import numpy as np

from plugrad.ops.on_demand.factorizations.triangular import solve_lower

Array = Any

BLOCK: Final = 32


def lu_factor(A: Array, pivot: bool = True) -> tuple[Array, Array, Array]:
    """Both factors in one array, row exchanges counted from 1, and LAPACK's `info`, as int32.

    Shapes: (*, m, n) gives (*, m, n), (*, min(m, n)) and (*). `info` is the number of the first
    zero on the diagonal of U, 0 without one.
    """
    m, n = A.shape[-2:]
    batch = A.shape[:-2]
    k = min(m, n)
    LU = np.array(A, order="C").reshape(math.prod(batch), m, n)
    pivots = np.empty((len(LU), k), np.int32)
    which = np.arange(len(LU))
    with np.errstate(all="ignore"):
        # Integers get here without a matrix only.
        for start in range(0, k if len(LU) else 0, BLOCK):
            stop = min(start + BLOCK, k)
            for j in range(start, stop):
                _eliminate(LU, pivots, which, j, stop, pivot)
            if stop < n:
                diagonal = LU[:, start:stop, start:stop]
                above = solve_lower(diagonal, LU[:, start:stop, stop:], True)
                LU[:, start:stop, stop:] = above
                LU[:, stop:, stop:] -= LU[:, stop:, start:stop] @ above
    zero = np.diagonal(LU, axis1=-2, axis2=-1) == 0
    info = np.where(zero.any(-1), zero.argmax(-1) + 1, 0) if k else np.zeros(len(LU))
    return (
        LU.reshape(*batch, m, n),
        pivots.reshape(*batch, k),
        info.astype(np.int32).reshape(batch),
    )


def _eliminate(LU: Array, pivots: Array, which: Array, j: int, stop: int, pivot: bool) -> None:
    """One column: exchange rows, divide, and subtract from the block's other columns."""
    column = LU[:, j:, j]
    if not pivot:
        column = column[:, :1]
    # LAPACK compares complex numbers by the sum of their parts, which needs no root.
    size = abs(column.real) + abs(column.imag) if LU.dtype.kind == "c" else abs(column)
    found = np.where(np.isnan(size[:, 0]), 0, np.nan_to_num(size, nan=-1, posinf=np.inf).argmax(-1))
    rows = j + found
    pivots[:, j] = rows + 1
    taken = LU[which, rows]
    LU[which, rows] = LU[:, j]
    LU[:, j] = taken
    divisor = LU[:, j, j, None]
    below = np.where(divisor == 0, LU[:, j + 1 :, j], LU[:, j + 1 :, j] / divisor)
    LU[:, j + 1 :, j] = below
    LU[:, j + 1 :, j + 1 : stop] -= below[..., None] * LU[:, j, None, j + 1 : stop]


def permutation(pivots: Array, m: int) -> Array:
    """What row of the factorized matrix each row of L @ U is: (*, k) pivots give (*, m)."""
    batch = pivots.shape[:-1]
    flat = pivots.reshape(math.prod(batch), pivots.shape[-1])
    order = np.tile(np.arange(m), (len(flat), 1))
    which = np.arange(len(flat))
    for j in range(pivots.shape[-1]):
        rows = flat[:, j] - 1
        taken = order[which, rows]
        order[which, rows] = order[:, j]
        order[:, j] = taken
    return order.reshape(*batch, m)
