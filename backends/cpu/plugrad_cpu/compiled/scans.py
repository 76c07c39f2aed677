"""Loops that run along the middle dimension of arrays (before, n, behind), all in one pass.

Sums and products are kept in the dtype of `start`. Without a dimension behind, each step of a line
depends on the one before; otherwise the elements behind form vectors.

All loops are in this module, because numba recompiles a loop only when its own module has changed.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from plugrad_cpu.compiled.jit import compiled

Array = Any

# The number of columns with sums that stay in the first-level cache.
_WIDE: Final = 1024
# From so many elements on, vectors fill a part of a line faster than one element at a time.
_RUN: Final = 16


@compiled
def sums(a: Array, made: Array, start: Any) -> None:
    before, length, behind = a.shape
    totals = np.empty(min(behind, _WIDE), np.asarray(start).dtype)
    for number in range(before):
        if behind == 1:
            total = start
            for i in range(length):
                total += a[number, i, 0]
                made[number, i, 0] = total
            continue
        for first in range(0, behind, _WIDE):
            count = min(behind - first, _WIDE)
            totals[:] = start
            for i in range(length):
                line, found = a[number, i, first:], made[number, i, first:]
                for j in range(count):
                    totals[j] += line[j]
                    found[j] = totals[j]


@compiled
def products(a: Array, made: Array, start: Any) -> None:
    before, length, behind = a.shape
    totals = np.empty(min(behind, _WIDE), np.asarray(start).dtype)
    for number in range(before):
        if behind == 1:
            total = start
            for i in range(length):
                total *= a[number, i, 0]
                made[number, i, 0] = total
            continue
        for first in range(0, behind, _WIDE):
            count = min(behind - first, _WIDE)
            totals[:] = start
            for i in range(length):
                line, found = a[number, i, first:], made[number, i, first:]
                for j in range(count):
                    totals[j] *= line[j]
                    found[j] = totals[j]


@compiled
def _later(x: Any, best: Any, greatest: bool) -> Any:
    """Whether a number takes the place of the best before it; the first nan beats all numbers."""
    beats = x >= best if greatest else x <= best
    return beats or x != x


@compiled
def extrema(a: Array, made: Array, places: Array, greatest: bool) -> None:
    """The greatest, or smallest, element so far and its place."""
    before, length, behind = a.shape
    for number in range(before):
        for j in range(behind):
            made[number, 0, j] = a[number, 0, j]
            places[number, 0, j] = 0
        if behind == 1:
            # The next element that replaces the current one is usually far away, so the processor
            # predicts the branch well and does not stall.
            i = 0
            while i < length:
                first, best = i, a[number, i, 0]
                i += 1
                if best != best:
                    while i < length and a[number, i, 0] == a[number, i, 0]:
                        i += 1
                elif greatest:
                    while i < length and a[number, i, 0] < best:
                        i += 1
                else:
                    while i < length and a[number, i, 0] > best:
                        i += 1
                if i - first > _RUN:
                    made[number, first:i, 0] = best
                    places[number, first:i, 0] = first
                    continue
                for k in range(first, i):
                    made[number, k, 0] = best
                    places[number, k, 0] = first
            continue
        for i in range(1, length):
            for j in range(behind):
                x, best = a[number, i, j], made[number, i - 1, j]
                later = _later(x, best, greatest)
                made[number, i, j] = x if later else best
                places[number, i, j] = i if later else places[number, i - 1, j]
