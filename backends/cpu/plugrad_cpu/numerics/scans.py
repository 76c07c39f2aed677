"""Sums, products and extrema up to each element along a dimension, in PyTorch's order and dtypes.

NumPy's `accumulate` reads each result back from memory for the next; compiled loops keep it in a
register. Both give the same bits.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from plugrad_cpu.compiled import loops_for

Array = Any

# The dtypes in which PyTorch keeps sums and products along a line, if they differ from the
# result's.
_WIDER: Final = {
    np.dtype(np.float32): np.dtype(np.float64),
    np.dtype(np.complex64): np.dtype(np.complex128),
}
_NARROW: Final = np.dtype(np.float32)
_INT64: Final = np.dtype(np.int64)
# NumPy's letters of the dtypes for which there are loops. Products of complex numbers may be
# rounded otherwise by NumPy.
_LOOPS: Final = {"sums": "fdilqFD", "products": "fdilq", "extrema": "fdilqB"}


def _is_narrow(dtype: Any) -> bool:
    return bool(dtype.itemsize == 2 and dtype.kind in "fV")


def _lines(a: Array, dim: int) -> Array:
    """As (before, n, behind), in one piece."""
    shape = math.prod(a.shape[:dim]), a.shape[dim], math.prod(a.shape[dim + 1 :])
    return np.ascontiguousarray(a).reshape(shape)


def _scan(name: str, a: Array, dim: int, dtype: Any) -> Array:
    given = a.astype(dtype, copy=False)
    if a.size == 0 or a.ndim == 0:
        return given.copy()
    if _is_narrow(dtype):
        given, kept = given.astype(_NARROW), _NARROW
    else:
        kept = _WIDER.get(dtype, dtype)
    loops = loops_for("scans", a.size) if given.dtype.char in _LOOPS[name] else None
    if loops is None:
        ufunc, start = (np.add, 0) if name == "sums" else (np.multiply, 1)
        found = ufunc.accumulate(given, dim, kept)
        if name == "sums" and found.dtype.kind in "fc":
            found += start  # which distinguishes 0 from -0
        return np.ascontiguousarray(found).astype(dtype, copy=False)
    lines = _lines(given, dim)
    made = np.empty(lines.shape, lines.dtype)
    getattr(loops, name)(lines, made, kept.type(name == "products"))
    return made.reshape(a.shape).astype(dtype, copy=False)


def cumsum(a: Array, dim: int, dtype: Any) -> Array:
    return _scan("sums", a, dim, dtype)


def cumprod(a: Array, dim: int, dtype: Any) -> Array:
    return _scan("products", a, dim, dtype)


def _extrema(a: Array, dim: int, greatest: bool) -> Any:
    """Values and places; NotImplemented of dtypes that PyTorch refuses."""
    if a.dtype.kind == "b":
        found, places = _extrema(a.view(np.uint8), dim, greatest)
        return found.view(np.bool_), places
    if _is_narrow(a.dtype):
        found, places = _extrema(a.astype(_NARROW), dim, greatest)
        return found.astype(a.dtype), places
    if a.dtype.kind not in "iuf":
        return NotImplemented
    if a.size == 0 or a.ndim == 0:
        return a.copy(), np.zeros(a.shape, _INT64)
    lines = _lines(a, dim)
    loops = loops_for("scans", a.size) if a.dtype.char in _LOOPS["extrema"] else None
    if loops is None:
        ufunc = np.maximum if greatest else np.minimum
        # The later one of equal elements, and of nans, which equal no element.
        best = ufunc.accumulate(lines, 1)
        later = (lines == best) | (lines != lines)
        numbers = np.arange(lines.shape[1])[:, None]
        places = np.maximum.accumulate(np.where(later, numbers, 0), 1)
        found = np.take_along_axis(lines, places, 1)
    else:
        found, places = np.empty(lines.shape, a.dtype), np.empty(lines.shape, _INT64)
        loops.extrema(lines, found, places, greatest)
    return found.reshape(a.shape), places.reshape(a.shape)


def cummax(a: Array, dim: int) -> Any:
    """The greatest element so far and its place; the later of equal ones."""
    return _extrema(a, dim, True)


def cummin(a: Array, dim: int) -> Any:
    """The smallest element so far and its place; the later of equal ones."""
    return _extrema(a, dim, False)
