"""Copies of NumPy arrays with a part replaced. The core has checked the part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad_cpu.kernels.views import diagonal, select, slice_
from plugrad_cpu.memory import strided

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


def _copy(array: Array) -> Array:
    """In order, whatever order the array is in, and writable."""
    return np.array(array, order="C")


def select_scatter(array: Array, source: Array, dim: int, index: int) -> Array:
    result = _copy(array)
    select(result, dim, index)[...] = source
    return result


def slice_scatter(array: Array, source: Array, dim: int, start: int, end: int, step: int) -> Array:
    result = _copy(array)
    slice_(result, dim, start, end, step)[...] = source
    return result


def diagonal_scatter(array: Array, source: Array, offset: int, dim1: int, dim2: int) -> Array:
    result = _copy(array)
    diagonal(result, offset, dim1, dim2)[...] = source
    return result


def as_strided_scatter(
    array: Array, source: Array, size: Shape, stride: Shape, storage_offset: int
) -> Array:
    result = _copy(array)
    strided(result.reshape(-1), size, stride, storage_offset)[...] = source
    return result


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "select_scatter": select_scatter,
    "slice_scatter": slice_scatter,
    "diagonal_scatter": diagonal_scatter,
    "_as_strided_scatter": as_strided_scatter,
}
