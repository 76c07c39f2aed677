"""Kernels of sorting, of operators based on an order, and of histograms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad.plugins.strides import copy_order
from plugrad_cpu.numerics.sorting import first_in_order, stable_order

Array = np.ndarray[Any, Any]

# Elements that are in the cache at a time.
_BLOCK: Final = 1 << 14


def _laid_out_as(result: Array, array: Array) -> Array:
    """A row-major result with the strides of an array of its shape, if that is dense."""
    order = copy_order(array)
    if order == "C":
        return result
    found = np.empty_like(array, result.dtype)
    found[...] = result
    return found


def _at(array: Array, indices: Array, dim: int) -> Array:
    return array.take(indices) if array.ndim == 1 else np.take_along_axis(array, indices, dim)


def sort(array: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    if array.ndim == 0:
        return array.copy(), np.zeros((), np.int64)
    order = np.ascontiguousarray(stable_order(array, dim, descending))
    return _laid_out_as(_at(array, order, dim), array), _laid_out_as(order, array)


def topk(array: Array, k: int, dim: int, largest: bool) -> tuple[Array, Array]:
    if array.ndim == 0:
        return array.copy(), np.zeros((), np.int64)
    indices = np.ascontiguousarray(first_in_order(array, k, dim, largest))
    return _at(array, indices, dim), indices


def unique(array: Array, is_sorted: bool, return_inverse: bool, return_counts: bool) -> Any:
    """The different elements; where each element is among them; and how often each occurs."""
    if array.dtype.kind == "c":
        return NotImplemented
    flat = array.reshape(-1)
    order = stable_order(flat)
    ordered = flat.take(order)
    begins = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    starts = np.flatnonzero(begins)
    inverse = counts = np.empty(0, np.int64)
    if return_inverse:
        inverse = np.empty(ordered.size, np.int64)
        inverse[order] = np.cumsum(begins) - 1
        inverse = inverse.reshape(array.shape)
    if return_counts:
        counts = np.diff(starts, append=ordered.size)
    return ordered.take(starts), inverse, counts


def histc(array: Array, bins: int, least: Any, most: Any) -> Any:
    """How many elements are in each of the intervals between two numbers.

    NotImplemented leaves to the decomposition what it refuses, and rare dtypes.
    """
    if array.dtype.char not in "fd" or array.size == 0 or bins < 1:
        return NotImplemented
    low, high = float(least), float(most)
    is_whole = low == high
    if is_whole:
        low, high = float(array.min()), float(array.max())
        is_whole = low < high
    if low == high:
        low, high = low - 1, high + 1
    of = array.dtype.type
    if not (low < high and math.isfinite(of((high - low) * bins))):
        return NotImplemented
    counts = np.zeros(bins, np.int64)
    flat = array.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        part = flat[start : start + _BLOCK]
        if not is_whole:
            part = part[(part >= of(low)) & (part <= of(high))]
        place = (part - of(low)) * of(bins) / of(high - low)
        np.minimum(place, of(bins - 1), out=place)
        counts += np.bincount(place.astype(np.intp), minlength=bins)
    return counts.astype(array.dtype)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "sort": sort,
    "topk": topk,
    "histc": histc,
    "_unique2": unique,
}
