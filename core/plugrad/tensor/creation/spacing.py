"""Equally spaced numbers, for `linspace` and `logspace`, and the indices of triangles, on every
backend.

Backends import them from `plugrad.plugins.spacing`.
"""

from __future__ import annotations

# Interpreted: what it calls takes longer.
from typing import Any


def spaced(xp: Any, start: Any, end: Any, steps: int, whole: bool) -> Any:
    """`steps` numbers from `start` to `end`, as the array library likes them: to be cast.

    They are counted from both ends towards the middle, so that both are exact.

    Args:
        xp: the array library, a namespace with the names of the array API standard.
        whole: cut the ends down to integers first, as for a result that has integers.

    >>> import numpy as np
    >>> from plugrad.plugins.spacing import spaced
    >>> spaced(np, 0.0, 1.0, 5, False)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    if whole:
        start, end = int(start), int(end)
    if steps < 2:
        return xp.full((steps,), start)
    places = xp.arange(steps, dtype=xp.int64)
    step = (end - start) / (steps - 1)
    first_half = places < steps // 2
    return xp.where(first_half, start + step * places, end - step * (steps - 1 - places))


def triangle(xp: Any, row: int, col: int, offset: int, upper: bool) -> Any:
    """The row and column indices of a triangle of a matrix, as an array of two rows of int64.

    Memory is needed for the result only, not for a matrix of that size.

    Args:
        xp: the array library, a namespace with the names of the array API standard.
        upper: whether it is the part above the diagonal, else that below; `offset` moves it.

    >>> import numpy as np
    >>> from plugrad.plugins.spacing import triangle
    >>> triangle(np, 2, 3, 0, True)
    array([[0, 0, 0, 1, 1],
           [0, 1, 2, 1, 2]])
    """
    offset = max(-row, min(offset, col))
    # The rows that have an element in it.
    first, last = (0, min(row, col - offset)) if upper else (max(0, -offset), row)
    if col == 0 or last <= first:
        return xp.zeros((2, 0), dtype=xp.int64)
    diagonal = xp.arange(first, last, dtype=xp.int64) + offset
    begin = xp.maximum(diagonal, 0) if upper else xp.zeros_like(diagonal)
    end = xp.full_like(diagonal, col) if upper else xp.minimum(diagonal + 1, col)
    count = end - begin
    before = xp.cumsum(count) - count
    rows = xp.repeat(xp.arange(first, last, dtype=xp.int64), count)
    columns = xp.arange(int(rows.size), dtype=xp.int64) - xp.repeat(before - begin, count)
    return xp.stack((rows, columns))


def largest_below(xp: Any, high: Any, low: Any) -> Any:
    """The largest number below `high`, the end of a range from `low`, in their dtype.

    What is drawn from [0, 1) and stretched to a range may be rounded up to its end, which is
    outside. An empty range has its end.

    Args:
        xp: the array library: NumPy, or one with its `nextafter`.
        high: a number of that library, of the dtype that the numbers have.
        low: another one.

    >>> import numpy as np
    >>> from plugrad.plugins.spacing import largest_below
    >>> float(largest_below(np, np.float16(3), np.float16(2)))
    2.998046875
    """
    return xp.nextafter(high, low)
