"""Sums of large arrays as products with ones, which BLAS computes faster than NumPy adds.

Lines are cut into parts, and NumPy adds the parts' sums, so errors are as small as in NumPy's own
sums.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

Array = Any
Dims = tuple[int, ...]

# NumPy's stubs lack these arguments by position, which is faster.
_reduce: Final[Callable[..., Any]] = np.add.reduce
# Elements from which on the way to BLAS pays.
_SIZES: Final = {np.dtype(np.float32): 1 << 15, np.dtype(np.float64): 1 << 16}
LARGE: Final = min(_SIZES.values())
# Of a part of a line, and of a line that is worth a call of its own.
_PART: Final = 1024
_LONG: Final = 1 << 15
# Shorter lines, and parts, are added up by NumPy.
_SHORT: Final = 32
_ONES: Final = {dtype: np.ones(_PART, dtype) for dtype in _SIZES}


def add(a: Array, dims: Dims, dtype: Any, keepdim: bool) -> Any:
    """`np.add.reduce`."""
    if a.size >= LARGE and _is_suited(a, dtype):
        kept = a.ndim - len(dims)
        length = math.prod(a.shape[kept:])
        if length >= _SHORT and min(dims, default=kept) >= kept:
            found = _of_lines(a.reshape(-1, length))
            return found.reshape(a.shape[:kept] + (1,) * (len(dims) if keepdim else 0))
    return _reduce(a, dims, dtype, None, keepdim)


def _is_suited(a: Array, dtype: Any) -> bool:
    large: bool = a.size >= _SIZES.get(a.dtype, math.inf)
    return large and bool(dtype == a.dtype) and bool(a.flags.c_contiguous)


@functools.cache
def _part(length: int) -> int:
    """The largest divisor of a length that is no longer than a part; 0 if it is short."""
    return next((size for size in range(_PART, _SHORT - 1, -1) if length % size == 0), 0)


def _of_lines(lines: Array) -> Array:
    """The sums of the rows of a matrix."""
    length = lines.shape[1]
    ones = _ONES[lines.dtype]
    part = _part(length)
    if part == length:
        return lines.dot(ones[:length])
    if part:
        # NumPy takes only matrices to BLAS as a whole.
        sums = lines.reshape(-1, part).dot(ones[:part])
        return np.add.reduce(sums.reshape(len(lines), -1), 1)
    if length < _LONG:
        return np.add.reduce(lines, 1)
    whole = length - length % _PART
    found = np.add.reduce(lines[:, whole:], 1)
    for place, line in enumerate(lines):
        found[place] += np.add.reduce(line[:whole].reshape(-1, _PART).dot(ones))
    return found
