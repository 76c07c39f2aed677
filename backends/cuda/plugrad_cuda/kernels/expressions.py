"""Fused elementwise functions, which take a namespace, arrays and numbers."""

from __future__ import annotations

import math
from typing import Any

from plugrad_cuda.kernels.namespace import Array


def cube(xp: Any, a: Array) -> Any:
    return a * a * a


def rsqrt(xp: Any, a: Array) -> Any:
    return xp.reciprocal(xp.sqrt(a))


def reciprocal_square(xp: Any, a: Array) -> Any:
    return xp.reciprocal(a * a)


def sigmoid(xp: Any, a: Array) -> Any:
    return xp.reciprocal(xp.exp(-a) + 1)


def floor_divide(xp: Any, a: Array, b: Array) -> Any:
    """By the exact remainder: the quotient of 1 and 0.1 rounds to 10, but 9 fit."""
    rest = xp.fmod(a, b)
    quotient = (a - rest) / b
    quotient = xp.where((rest != 0) & ((b < 0) != (rest < 0)), quotient - 1, quotient)
    whole = xp.floor(quotient)
    whole = xp.where(quotient - whole > 0.5, whole + 1, whole)
    whole = xp.where(quotient == 0, xp.copysign(quotient * 0, a / b), whole)
    return xp.where(b == 0, a / b, whole)


def remainder(xp: Any, a: Array, b: Array) -> Any:
    rest = xp.fmod(a, b)
    return xp.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)


def fmod(xp: Any, a: Array, b: Array) -> Any:
    return xp.fmod(a, b)


def truncated_quotient(xp: Any, a: Array, b: Array) -> Any:
    quotient = xp.floor_divide(a, b)
    inexact = (quotient * b != a) & ((a < 0) != (b < 0))
    return xp.where(inexact, quotient + 1, quotient)


def divide_truncated(xp: Any, a: Array, b: Array) -> Any:
    return xp.trunc(a / b)


def integer_power(xp: Any, a: Array, b: Array) -> Any:
    """With a negative exponent the truncated reciprocal, and PyTorch's 0 for base 0."""
    power = xp.power(a, xp.abs(b))
    return xp.where((b >= 0) | (a == 1) | (a + 1 == 0), power, a * 0)


def float_signs(xp: Any, a: Array) -> Any:
    """PyTorch's sign of nan is 0."""
    return xp.where(a > 0, 1.0, xp.where(a < 0, -1.0, xp.where(a == 0, a, 0.0)))


def complex_signs(xp: Any, a: Array) -> Any:
    return xp.where(a == 0, a, a / xp.abs(a))


def frac(xp: Any, a: Array) -> Any:
    return a - xp.trunc(a)


def round_up_to(xp: Any, a: Array, scale: Any) -> Any:
    return xp.rint(a / scale) * scale


def round_down_to(xp: Any, a: Array, scale: Any) -> Any:
    return xp.rint(a * scale) / scale


def real_angle(xp: Any, a: Array) -> Any:
    return xp.where(a < 0, math.pi, xp.where(xp.isnan(a), a, 0.0))


def lerp(xp: Any, start: Array, end: Array, weight: Any) -> Any:
    """From the nearer end, so that weight 1 gives `end` exactly."""
    difference = end - start
    near = xp.abs(weight) < 0.5
    return xp.where(near, start + difference * weight, end - difference * (1 - weight))


def addcmul(xp: Any, a: Array, b: Array, c: Array, value: Any) -> Any:
    return a + b * value * c


def addcdiv(xp: Any, a: Array, b: Array, c: Array, value: Any) -> Any:
    return a + b * value / c


def rsub(xp: Any, a: Array, value: Any, alpha: Any) -> Any:
    return value - a * alpha


def clamp(xp: Any, a: Array, low: Any, high: Any) -> Any:
    return xp.minimum(xp.maximum(a, low), high)


def nan_to_num(xp: Any, a: Array, nan: Any, posinf: Any, neginf: Any) -> Any:
    kept = xp.where(a == math.inf, posinf, xp.where(a == -math.inf, neginf, a))
    return xp.where(xp.isnan(a), nan, kept)


def left_shift(xp: Any, a: Array, b: Array, bits: int) -> Any:
    inside = (b >= 0) & (b < bits)
    return xp.where(inside, xp.left_shift(a, xp.where(inside, b, b * 0)), a * 0)


def right_shift(xp: Any, a: Array, b: Array, bits: int) -> Any:
    """What is shifted by too much is all sign."""
    inside = (b >= 0) & (b < bits)
    sign = xp.where(a < 0, a * 0 - 1, a * 0)
    return xp.where(inside, xp.right_shift(a, xp.where(inside, b, b * 0)), sign)


def shifted_exp(xp: Any, a: Array, top: Array) -> Any:
    return xp.exp(a - top)
