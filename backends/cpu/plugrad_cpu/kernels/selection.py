"""Kernels that choose between values: where, clamp, nan_to_num."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from plugrad_cpu.numerics.adapters import Array, as_operand

# From this size on a mask no longer fits the processor's memory of past branches, and NumPy's
# loop, which branches at each element, is ten times slower than whole passes over the bits.
_LARGE: Final = 1 << 15
_BITS: Final[dict[int, Any]] = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}


def where(condition: Array, a: Any, b: Any) -> Any:
    """At most one of `a` and `b` is a number; the arrays have one dtype."""
    if not isinstance(a, np.ndarray):
        if condition.size >= _LARGE and _is_zero(a) and _fits(condition, b):
            return _keep(np.subtract(condition.view(np.int8), 1, dtype=_BITS[b.itemsize]), b)
        a = as_operand(a, b.dtype)
    elif not isinstance(b, np.ndarray):
        if condition.size >= _LARGE and _is_zero(b) and _fits(condition, a):
            return _keep(np.negative(condition.view(np.int8), dtype=_BITS[a.itemsize]), a)
        b = as_operand(b, a.dtype)
    elif condition.size >= _LARGE and _fits(condition, a) and _fits(condition, b):
        return _blend(condition, a, b)
    return np.where(condition, a, b)


def where_numbers(condition: Array, a: Any, b: Any, dtype: Any) -> Any:
    return np.where(condition, as_operand(a, dtype), as_operand(b, dtype))


def _is_zero(number: Any) -> bool:
    """Whether all bits are 0, which is false for -0.0."""
    return number == 0 and not isinstance(number, complex) and math.copysign(1, number) > 0


def _fits(condition: Array, a: Array) -> bool:
    return (
        a.shape == condition.shape
        and a.itemsize in _BITS
        and a.flags.c_contiguous
        and condition.flags.c_contiguous
    )


def _keep(mask: Array, a: Array) -> Any:
    """`a` where the integer mask is -1, 0 where it is 0; overwrites the mask."""
    return np.bitwise_and(mask, a.view(mask.dtype), out=mask).view(a.dtype)


def _blend(condition: Array, a: Array, b: Array) -> Any:
    bits = _BITS[a.itemsize]
    mask = np.negative(condition.view(np.int8), dtype=bits)
    flips = np.bitwise_xor(a.view(bits), b.view(bits))
    np.bitwise_and(flips, mask, out=flips)
    return np.bitwise_xor(flips, b.view(bits), out=flips).view(a.dtype)


def clamp(a: Array, low: Any, high: Any) -> Any:
    """Bounds are arrays or numbers of the dtype's category, or None; the upper one wins."""
    if low is None:
        return clamp_max(a, high)
    raised = clamp_min(a, low)
    if high is None:
        return raised
    if not isinstance(high, np.ndarray) and isinstance(raised, np.ndarray):
        return np.minimum(raised, as_operand(high, a.dtype), out=raised)
    return clamp_max(raised, high)


def clamp_min(a: Array, low: Any) -> Any:
    return np.maximum(a, low if isinstance(low, np.ndarray) else as_operand(low, a.dtype))


def clamp_max(a: Array, high: Any) -> Any:
    return np.minimum(a, high if isinstance(high, np.ndarray) else as_operand(high, a.dtype))


def nan_to_num(a: Array, nan: float, posinf: float, neginf: float) -> Any:
    """The replacements are numbers of the dtype; integers have nothing to replace. The parts of
    complex numbers are replaced each by itself."""
    result = np.array(a, copy=True)
    if a.dtype.kind in "biu":
        return result
    for part in (result.real, result.imag) if a.dtype.kind == "c" else (result,):
        least = part == -math.inf
        most = part == math.inf
        part[np.isnan(part)] = nan
        part[most] = posinf
        part[least] = neginf
    return result
