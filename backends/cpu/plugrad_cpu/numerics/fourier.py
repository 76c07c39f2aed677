"""Fourier transforms in any dimensions, composed of transforms of rows.

For a dimension that is not the last, some columns at a time are transposed to rows, transformed and
transposed back, all within the cache. A long row is treated as a matrix: its columns are
transformed, its elements multiplied by roots of unity, and then its rows transformed (the four-step
method).

Source: Bailey, FFTs in External or Hierarchical Memory, Journal of Supercomputing 4 (1990).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Final

import numpy as np

from plugrad_cpu.compiled import ENOUGH, loops
from plugrad_cpu.numerics.fftw import is_aligned, transform_rows

Array = Any
Dims = tuple[int, ...]
Piece = tuple[slice, slice]

# Bytes of the rows that are in the cache at a time.
_BLOCK: Final = 1 << 19
# The same where there are three arrays of this size.
_PAIRS: Final = 1 << 18
# Of matrices with rows of a multiple of so many bytes, columns share few lines of the cache; so a
# gap of one line is left behind each row.
_APART: Final = 2048
_LINE: Final = 64
# Elements of a row that is taken as a matrix, and bytes of the roots of unity that it may need.
_LONG: Final = 1 << 16
_ROOTS: Final = 1 << 25
# Numbers of a row of float32 for which FFTW's transform of pairs is faster than SciPy's of numbers.
_PAIRED: Final = frozenset(1 << power for power in range(5, 13))
# How many times as long as the other may one side of such a matrix be.
_OBLONG: Final = 4


class Transform:
    """A transform that is not scaled, of an array with elements.

    Attributes:
        forward: whether the exponent is negative.
        threads: how many may work at it.
    """

    def __init__(self, forward: bool, threads: int) -> None:
        self.forward = forward
        self.threads = threads

    def whole(self, a: Array, dims: Dims) -> Array:
        """The transform of complex numbers."""
        found = np.empty(a.shape, a.dtype)
        for dim in sorted(dims, reverse=True):
            self._pass(a, found, dim)
            a = found
        return found

    def half(self, a: Array, dims: Dims) -> Array:
        """The transform of real numbers: half of the spectrum in the last dimension, which is among
        `dims`."""
        length = a.shape[-1]
        found = np.empty((*a.shape[:-1], length // 2 + 1), np.result_type(a.dtype, np.complex64))
        by_pairs = pair_loops(length, a.size, a.dtype)
        if by_pairs:
            rows = np.ascontiguousarray(a).reshape(-1, length)
            if not is_aligned(rows):
                rows = rows.copy()
            results = found.view(a.dtype).reshape(len(rows), -1)
            roots = _roots_of_pairs(length, True, a.dtype)

            def unfold(piece: Piece) -> None:
                part = rows[piece[0]]
                pairs = np.empty((len(part), length // 2), found.dtype)
                transform_rows(part.view(found.dtype), pairs, True)
                by_pairs.turn(pairs.view(a.dtype), results[piece[0]], *roots, True)

            self._each(unfold, _pieces(rows[:, :, None], self.threads, _PAIRS))
        else:
            self._pass(a, found, a.ndim - 1)
        for dim in sorted(dims, reverse=True):
            if dim < a.ndim - 1:
                self._pass(found, found, dim)
        return found

    def real(self, a: Array, dims: Dims, length: int) -> Array:
        """The real numbers of half of a spectrum; where `pair_loops` has loops for them."""
        others = [dim for dim in dims if dim < a.ndim - 1]
        if others:
            a = self.whole(a, tuple(others))
        found = np.empty((*a.shape[:-1], length), a.real.dtype)
        by_pairs = pair_loops(length, found.size, found.dtype)
        halves = np.ascontiguousarray(a).view(found.dtype).reshape(-1, length + 2)
        results = found.view(a.dtype).reshape(-1, length // 2)
        roots = _roots_of_pairs(length, False, found.dtype)

        def fold(piece: Piece) -> None:
            part = halves[piece[0]]
            pairs = np.empty((len(part), length // 2), a.dtype)
            by_pairs.turn(part, pairs.view(found.dtype), *roots, False)
            transform_rows(pairs, results[piece[0]], False)

        self._each(fold, _pieces(results[:, :, None], self.threads, _PAIRS))
        return found

    def _pass(self, a: Array, found: Array, dim: int) -> None:
        """The transform along one dimension; the result may take the place of what is read."""
        before, behind = math.prod(a.shape[:dim]), math.prod(a.shape[dim + 1 :])
        read = a.reshape(before, a.shape[dim], behind)
        made = found.reshape(before, found.shape[dim], behind)
        if behind > 1:
            self._each(lambda piece: self._columns(read, made, piece), _pieces(read, self.threads))
            return
        rows, results = read[:, :, 0], made[:, :, 0]
        sides = _sides(rows.shape[1], rows.dtype) if rows.dtype == results.dtype else None
        if sides is None:
            pieces = _pieces(read, self.threads)
            self._each(lambda piece: self._rows(rows[piece[0]], results[piece[0]]), pieces)
        else:
            for row, result in zip(rows, results, strict=True):
                self._four_steps(row, result, *sides)

    def _each(self, work: Callable[[Piece], None], pieces: Iterator[Piece]) -> None:
        if self.threads == 1:
            for piece in pieces:
                work(piece)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            # The list raises what a thread has raised.
            list(pool.map(work, pieces))

    def _rows(self, rows: Array, results: Array) -> None:
        if not is_aligned(rows) or rows.strides[1] != rows.itemsize:
            rows = rows.copy()
        if is_aligned(results):
            transform_rows(rows, results, self.forward)
        else:
            made = np.empty(results.shape, results.dtype)
            transform_rows(rows, made, self.forward)
            results[...] = made

    def _turned(self, part: Array, count: int, dtype: Any) -> Array:
        """The transforms of columns (before, n, columns), as (before, columns, n)."""
        before, length, columns = part.shape
        rows = np.ascontiguousarray(part.swapaxes(1, 2)).reshape(-1, length)
        if not is_aligned(rows):
            rows = rows.copy()  # a part of an array that was in this order anyway
        made = _matrix(before * columns, count, dtype)
        transform_rows(rows, made, self.forward)
        return made.reshape(before, columns, count)

    def _columns(self, read: Array, made: Array, piece: Piece) -> None:
        part = read[piece[0], :, piece[1]]
        if part.strides[1] % _APART == 0:
            before, length, columns = part.shape
            near = _matrix(before * length, columns, part.dtype, gaps=True)
            part = near.reshape(part.shape)
            part[...] = read[piece[0], :, piece[1]]
        found = self._turned(part, made.shape[1], made.dtype)
        made[piece[0], :, piece[1]] = found.swapaxes(1, 2)

    def _four_steps(self, row: Array, result: Array, high: int, wide: int) -> None:
        """One long row as a matrix."""
        read = row.reshape(1, high, wide)
        middle = np.empty((1, high, wide), row.dtype)
        roots = _roots(high, wide, self.forward, row.dtype)
        turned = result.reshape(wide, high)

        def columns(piece: Piece) -> None:
            self._columns(read, middle, piece)
            middle[:, :, piece[1]] *= roots[:, piece[1]]

        def rows(piece: Piece) -> None:
            lines = middle[0, piece[1]]
            made = _matrix(len(lines), lines.shape[1], lines.dtype)
            transform_rows(lines, made, self.forward)
            turned[:, piece[1]] = made.T

        self._each(columns, _pieces(read, self.threads))
        self._each(rows, _pieces(middle.swapaxes(1, 2), self.threads))


def pair_loops(length: int, count: int, dtype: Any) -> Any:
    """Loops for rows of real numbers, which are transformed as pairs; None where that does not pay.

    What was loaded before makes no difference to a result.
    """
    suits = count >= ENOUGH and length in _PAIRED and dtype == np.float32
    return loops("spectra") if suits else None


@lru_cache(maxsize=8)
def _roots_of_pairs(length: int, forward: bool, dtype: Any) -> tuple[Array, Array, Array]:
    """What `_fold` multiplies with: roots, real and imaginary parts, and an array of one number."""
    share, turn = (0.5, -2j) if forward else (1.0, 2j)
    roots = turn * share / 2 * np.exp(np.arange(length // 2) * (turn * math.pi / length))
    # numba takes a while to find out the type of a NumPy number.
    return roots.real.astype(dtype), roots.imag.astype(dtype), np.array([share], dtype)


def _pieces(read: Array, threads: int, block: int = _BLOCK) -> Iterator[Piece]:
    """Parts (before, columns) of an array (before, n, columns) that fit into the cache, at least
    one for each thread."""
    before, length, columns = read.shape
    most = min(block // read.itemsize, math.ceil(read.size / threads))
    line = _LINE // read.itemsize
    # Whole lines of the cache, which are aligned.
    wide = min(columns, max(most // length // line, 1) * line)
    high = max(most // (length * wide), 1)
    if columns == 1:
        high = math.ceil(high / line) * line
    for first in range(0, before, high):
        for start in range(0, columns, wide):
            yield slice(first, first + high), slice(start, start + wide)


def _matrix(rows: int, count: int, dtype: Any, gaps: bool = False) -> Array:
    """One to write to, with gaps behind its rows where its columns need them."""
    gap = _LINE // dtype.itemsize if gaps or count * dtype.itemsize % _APART == 0 else 0
    return np.empty((rows, count + gap), dtype)[:, :count]


def _sides(count: int, dtype: Any) -> tuple[int, int] | None:
    """The sides of the matrix that a long row is; None for a row that is transformed as it is."""
    if count < _LONG or count * dtype.itemsize > _ROOTS:
        return None
    high = math.isqrt(count)
    while count % high:
        high -= 1
    wide = count // high
    return (high, wide) if wide <= _OBLONG * high else None


@lru_cache(maxsize=2)
def _roots(high: int, wide: int, forward: bool, dtype: Any) -> Array:
    """Powers of the root of unity, (high, wide): its exponents are the products of the places."""
    count = high * wide
    exponents = np.outer(np.arange(high), np.arange(wide)) % count
    turn = -2j if forward else 2j
    return np.exp(exponents * (turn * math.pi / count)).astype(dtype)
