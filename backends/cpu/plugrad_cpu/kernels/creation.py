"""Kernels that make arrays from sizes and numbers, or fill them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad.plugins.spacing import spaced, triangle
from plugrad.plugins.strides import copy_order
from plugrad_cpu.numerics.adapters import cut_down

Array = np.ndarray[Any, Any]
DTypeLike = Any
Shape = tuple[int, ...]

INT64 = np.dtype(np.int64)


def empty(size: Shape, dtype: DTypeLike, device: int) -> Array:
    return np.empty(size, dtype)


def zeros(size: Shape, dtype: DTypeLike, device: int) -> Array:
    return np.zeros(size, dtype)


def ones(size: Shape, dtype: DTypeLike, device: int) -> Array:
    result = np.empty(size, dtype)
    result.fill(1.0)  # np.ones does the same by two functions of Python
    return result


def full(size: Shape, value: Any, dtype: DTypeLike, device: int) -> Array:
    result = np.empty(size, dtype)
    result[...] = cut_down(value, dtype)
    return result


def arange(start: Any, step: Any, count: int, dtype: DTypeLike, device: int) -> Array:
    """Computed in float64, or exactly for integers, and then cast."""
    if step == 0:
        return np.full(count, start).astype(dtype, copy=False)
    if isinstance(start, int) and isinstance(step, int):
        exact = np.arange(start, start + count * step, step, dtype=INT64)
        return exact if dtype is INT64 else exact.astype(dtype, copy=False)
    numbers: Array = start + step * np.arange(count, dtype=np.float64)
    return numbers.astype(dtype, copy=False)


def linspace(start: Any, end: Any, steps: int, dtype: DTypeLike, device: int) -> Array:
    numbers: Array = spaced(np, start, end, steps, dtype.kind in "iu")
    return numbers.astype(dtype, copy=False)


def logspace(start: Any, end: Any, steps: int, base: float, dtype: DTypeLike, device: int) -> Array:
    powers: Array = np.power(base, spaced(np, start, end, steps, dtype.kind in "iu"))
    return powers.astype(dtype, copy=False)


def eye(n: int, m: int, dtype: DTypeLike, device: int) -> Array:
    return np.eye(n, m, dtype=dtype)


def tril_indices(row: int, col: int, offset: int, dtype: DTypeLike, device: int) -> Array:
    found: Array = triangle(np, row, col, offset, False).astype(dtype, copy=False)
    return found


def triu_indices(row: int, col: int, offset: int, dtype: DTypeLike, device: int) -> Array:
    found: Array = triangle(np, row, col, offset, True).astype(dtype, copy=False)
    return found


def fill_(array: Array, value: Any) -> Array:
    array[...] = value if isinstance(value, np.ndarray) else cut_down(value, array.dtype)
    return array


def zero_(array: Array) -> Array:
    array.fill(0)
    return array


def complex_of_parts(real: Any, imag: Any) -> Any:
    """Assembled part by part: real + 1j * imag would spread infinities and NaNs."""
    shape = np.broadcast_shapes(real.shape, imag.shape)
    dtype = np.dtype(f"c{real.dtype.itemsize * 2}")
    # The first operand decides on the layout.
    first = real if real.shape == shape else imag
    if first.shape == shape and copy_order(first) == "K":
        result = np.empty_like(first, dtype)
    else:
        result = np.empty(shape, dtype)
    result.real = real
    result.imag = imag
    return result


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "complex": complex_of_parts,
    "empty": empty,
    "zeros": zeros,
    "ones": ones,
    "full": full,
    "arange": arange,
    "linspace": linspace,
    "logspace": logspace,
    "eye": eye,
    "tril_indices": tril_indices,
    "triu_indices": triu_indices,
    "fill_": fill_,
    "zero_": zero_,
}
