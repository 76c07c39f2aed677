"""Elementwise functions with PyTorch's rounding: the C library's, or correct rounding."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plugrad_cpu.compiled.jit import bits_of, compiled, float_of, fused

Array = np.ndarray[Any, Any]


@compiled
def exp(x: Array, out: Array) -> None:
    for i in range(x.size):
        out[i] = math.exp(x[i])


@compiled
def log(x: Array, out: Array) -> None:
    for i in range(x.size):
        out[i] = math.log(x[i])


@compiled
def log1p(x: Array, out: Array) -> None:
    for i in range(x.size):
        out[i] = math.log1p(x[i])


@compiled
def tan(x: Array, out: Array) -> None:
    for i in range(x.size):
        out[i] = math.tan(x[i])


@compiled
def stretched(x: Array, out: Array, factor: Any, summand: Any) -> None:
    """x * factor + summand; all of one dtype."""
    for i in range(x.size):
        out[i] = fused(x[i], factor, summand)


# The bits of 2**-14, the smallest normal float16, and of 0.5; what the exponents of the two dtypes
# differ by; infinity as float32 and as float16.
_NORMAL, _HALF, _BIAS = 0x38800000, 0x3F000000, 0x38000000
_INFINITY, _NARROW_INFINITY, _NARROW_NAN = 0x7F800000, 0x7C00, 0x7E00


@compiled
def halves(x: Array, out: Array) -> None:
    """float32 as the bits (uint16) of float16, rounded to the nearest, halfway to even."""
    for i in range(x.size):
        bits = bits_of(x[i])
        size = np.int32(bits & 0x7FFFFFFF)
        # The last bit of 0.5 has the weight of the last bit of a subnormal number.
        small = np.int32(bits_of(float_of(size) + np.float32(0.5)) - _HALF)
        odd = (size >> 13) & 1
        normal = np.int32((size - _BIAS + 0xFFF + odd) >> 13)
        normal = np.int32(_NARROW_INFINITY) if normal > _NARROW_INFINITY else normal
        found = small if size < _NORMAL else normal
        found = np.int32(_NARROW_NAN | ((size >> 13) & 0x3FF)) if size > _INFINITY else found
        out[i] = ((bits >> 16) & 0x8000) | found
