"""L @ D @ L.T of symmetric and Hermitian matrices, in the format of LAPACK's ?sytrf.

Source: Bunch and Kaufman, "Some stable methods for calculating inertia and solving symmetric linear
systems", 1977, algorithm A.
"""

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from typing import Any, Final

import numpy as np

Array = Any

# Bounds the growth of elements.
ALPHA: Final = (1 + math.sqrt(17)) / 8


def ldl_factor(A: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """L and D in one array, pivots counted from 1, and LAPACK's `info`, as int32.

    Reads the lower triangles of (*, n, n). Negative pivots in a row mark a block of D of 2 by 2.
    `info` is the number of the first zero block of D, or 0.
    """
    batch, n = A.shape[:-2], A.shape[-1]
    LD = np.tril(A)
    pivots = np.empty((*batch, n), np.int32)
    info = np.zeros(batch, np.int32)
    with np.errstate(all="ignore"):
        for place in np.ndindex(batch):
            info[place] = _factor(LD[place], pivots[place], hermitian and A.dtype.kind == "c")
    return LD, pivots, info


def _size(values: Array) -> Array:
    return abs(values.real) + abs(values.imag) if values.dtype.kind == "c" else abs(values)


def _factor(A: Array, pivots: Array, hermitian: bool) -> int:
    """Overwrites the lower triangle."""
    n = len(A)
    info = k = 0
    while k < n:
        step, kp = 1, k
        diagonal = abs(A[k, k].real) if hermitian else _size(A[k : k + 1, k])[0]
        below = _size(A[k + 1 :, k])
        largest = below.max() if len(below) else 0.0
        if max(diagonal, largest) == 0 or np.isnan(diagonal):
            info = info or k + 1
            if hermitian:
                A[k, k] = A[k, k].real
        else:
            if diagonal < ALPHA * largest:
                step, kp = _choose(A, k, int(below.argmax()) + k + 1, diagonal, largest, hermitian)
            kk = k + step - 1
            if kp != kk:
                _exchange(A, k, kk, kp, step, hermitian)
            elif hermitian:
                A[k, k] = A[k, k].real
                if step == 2:
                    A[kk, kk] = A[kk, kk].real
            _update(A, k, step, hermitian)
        if step == 1:
            pivots[k] = kp + 1
        else:
            pivots[k] = pivots[k + 1] = -(kp + 1)
        k += step
    return info


def _choose(
    A: Array, k: int, row: int, diagonal: Any, largest: Any, hermitian: bool
) -> tuple[int, int]:
    """The size of the next block, and the row that is exchanged with its last row."""
    others = np.concatenate([_size(A[row, k:row]), _size(A[row + 1 :, row])])
    in_row = others.max()
    if diagonal >= ALPHA * largest * (largest / in_row):
        return 1, k
    own = abs(A[row, row].real) if hermitian else _size(A[row : row + 1, row])[0]
    return (1, row) if own >= ALPHA * in_row else (2, row)


def _exchange(A: Array, k: int, kk: int, kp: int, step: int, hermitian: bool) -> None:
    """Rows and columns kk < kp of the lower triangle from column k on."""
    A[kp + 1 :, [kk, kp]] = A[kp + 1 :, [kp, kk]]
    column, row = A[kk + 1 : kp, kk].copy(), A[kp, kk + 1 : kp].copy()
    A[kk + 1 : kp, kk] = row.conj() if hermitian else row
    A[kp, kk + 1 : kp] = column.conj() if hermitian else column
    A[kk, kk], A[kp, kp] = A[kp, kp], A[kk, kk]
    if hermitian:
        A[kp, kk] = A[kp, kk].conj()
        A[kk, kk], A[kp, kp] = A[kk, kk].real, A[kp, kp].real
    if step == 2:
        if hermitian:
            A[k, k] = A[k, k].real
        A[kk, k], A[kp, k] = A[kp, k], A[kk, k]


def _update(A: Array, k: int, step: int, hermitian: bool) -> None:
    """Divide the block's columns by the block, and subtract what they account for."""
    rest = k + step
    if rest == len(A):
        return
    block = _block(A, k, step, hermitian)
    columns = A[rest:, k:rest].copy()
    factor = np.linalg.solve(block.T, columns.T).T if step == 2 else columns / block[0, 0]
    turned = columns.conj() if hermitian else columns
    change = factor @ turned.T
    lower = np.tril_indices(len(A) - rest)
    A[rest:, rest:][lower] -= change[lower]
    if hermitian:
        places = np.arange(rest, len(A))
        A[places, places] = A[places, places].real
    A[rest:, k:rest] = factor


def _block(A: Array, k: int, step: int, hermitian: bool) -> Array:
    block = A[k : k + step, k : k + step].copy()
    if step == 2:
        block[0, 1] = block[1, 0].conj() if hermitian else block[1, 0]
    return block


def ldl_solve(LD: Array, pivots: Array, B: Array, hermitian: bool) -> Array:
    """X with A @ X = B, where `LD` and `pivots` come from `ldl_factor` of A.

    Raises:
        RuntimeError: the pivots are not rows.
    """
    n = LD.shape[-1]
    rows = np.abs(pivots)
    if rows.size and (rows.min() < 1 or rows.max() > n):
        raise RuntimeError(
            f"Pivots given to ldl_solve must all satisfy 1 <= |pivot| <= {n}. Did you properly "
            "pass the result of ldl_factor?"
        )
    batch = np.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    X = np.array(np.broadcast_to(B, (*batch, *B.shape[-2:])), order="C")
    LD = np.broadcast_to(LD, (*batch, n, n))
    pivots = np.broadcast_to(pivots, (*batch, n))
    with np.errstate(all="ignore"):
        for place in np.ndindex(batch):
            _solve(LD[place], pivots[place], X[place], hermitian and LD.dtype.kind == "c")
    return X


def _steps(pivots: Array) -> list[tuple[int, int, int]]:
    """First row, size and exchanged row of each block."""
    found = []
    k = 0
    while k < len(pivots):
        step = 1 if pivots[k] > 0 else 2
        found.append((k, step, abs(int(pivots[k])) - 1))
        k += step
    return found


def _solve(LD: Array, pivots: Array, X: Array, hermitian: bool) -> None:
    steps = _steps(pivots)
    for k, step, kp in steps:
        last, rest = k + step - 1, k + step
        if kp != last:
            X[[last, kp]] = X[[kp, last]]
        X[rest:] -= LD[rest:, k:rest] @ X[k:rest]
        if step == 2:
            X[k:rest] = np.linalg.solve(_block(LD, k, 2, hermitian), X[k:rest])
        else:
            X[k] /= LD[k, k].real if hermitian else LD[k, k]
    for k, step, kp in reversed(steps):
        last, rest = k + step - 1, k + step
        columns = LD[rest:, k:rest]
        X[k:rest] -= (columns.conj() if hermitian else columns).T @ X[rest:]
        if kp != last:
            X[[last, kp]] = X[[kp, last]]
