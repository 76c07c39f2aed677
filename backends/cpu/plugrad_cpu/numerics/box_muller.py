"""Normal numbers from uniform ones, in PyTorch's order and with its rounding.

PyTorch has two ways. For 16 and more contiguous numbers it takes uniform numbers in blocks of 16,
and pairs each of the first eight with one of the last eight; it draws the rest at the end again.
Otherwise it computes pairs one by one in float64, and keeps the second number for the next call.

In float32 the first way uses polynomials of the Cephes library (Moshier, 1992) and fused
multiplications and additions, as on any processor with AVX2. Here a fused operation is computed in
float64 and rounded to float32. Each function has 2**24 arguments; for all of them this gives the
same numbers.

Source: Box and Muller, A note on the generation of random normal deviates (1958).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad_cpu.compiled import loops_for
from plugrad_cpu.generator import CpuGenerator

Array = np.ndarray[Any, Any]

BLOCK: Final = 16
HALF: Final = BLOCK // 2

# How many blocks are computed at once: what is needed fits into the cache.
_BLOCKS: Final = 2048

ROOT_HALF_BITS: Final = 0x3F3504F3
ONE_BITS: Final = 0x3F800000

# Cephes, logf.c.
LOG: Final = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
LN2_LOW: Final = np.float32(-2.12194440e-4)
LN2_HIGH: Final = np.float32(0.693359375)

# Cephes, sinf.c: pi / 4 in three parts. Products of the first two with small integers are exact.
PARTS_OF_PI: Final = tuple(
    np.float32(part) for part in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
)
FOUR_OVER_PI: Final = np.float32(1.27323954473516)
TWO_PI: Final = np.float32(2 * math.pi)
COS: Final = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
SIN: Final = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_HALF: Final = np.float32(0.5)
_ONE: Final = np.float32(1)
_ZERO: Final = np.float32(0)


def _wide(number: float) -> float:
    """A number of 32 bits."""
    return float(np.float32(number))


class _Horner:
    """Polynomials in float32 with one rounding per step, in memory that is reused."""

    def __init__(self, size: int) -> None:
        self.wide = np.empty(size, np.float64)
        self.argument = np.empty(size, np.float64)
        self.value = np.empty(size, np.float32)

    def __call__(self, x: Array, coefficients: tuple[float, ...]) -> Array:
        wide, value = self.wide[: x.size], self.value[: x.size]
        argument = self.argument[: x.size]
        np.copyto(argument, x)
        np.multiply(argument, _wide(coefficients[0]), out=wide)
        last = len(coefficients) - 1
        for position in range(1, last + 1):
            wide += _wide(coefficients[position])
            np.copyto(value, wide, casting="same_kind")
            if position < last:
                np.multiply(argument, value, out=wide)
        return value

    def fused(self, x: Array, y: Any, z: Array) -> Array:
        """x * y + z, rounded once."""
        wide, argument = self.wide[: x.size], self.argument[: x.size]
        value = self.value[: x.size]
        np.copyto(wide, x)
        np.copyto(argument, y)
        wide *= argument
        np.copyto(argument, z)
        wide += argument
        np.copyto(value, wide, casting="same_kind")
        return value


def _log(horner: _Horner, u: Array) -> Array:
    """log(u) for 0 < u <= 1."""
    bits = u.view(np.int32)
    bits += ONE_BITS - ROOT_HALF_BITS
    exponent = bits >> 23
    exponent -= 127
    bits &= 0x7FFFFF
    bits += ROOT_HALF_BITS
    u -= _ONE
    power = exponent.astype(np.float32)
    square = u * u
    y = horner(u, LOG)
    y *= u
    y = horner.fused(y, square, power * LN2_LOW)
    square *= _HALF
    y -= square
    u += y
    power *= LN2_HIGH
    u += power
    return u


def _sine_and_cosine(horner: _Horner, x: Array) -> tuple[Array, Array]:
    """Sine and cosine for 0 <= x <= 2 pi."""
    octant = (x * FOUR_OVER_PI).astype(np.int32)
    octant += 1
    octant &= -2
    multiple = octant.astype(np.float32)
    for part in PARTS_OF_PI[:2]:
        x += multiple * part
    np.copyto(x, horner.fused(multiple, PARTS_OF_PI[2], x))
    square = x * x
    cosine = horner(square, COS) * square
    half = square * _HALF
    np.negative(half, out=half)
    cosine = horner.fused(cosine, square, half) + _ONE
    sine = horner(square, SIN) * square
    sine = horner.fused(sine, x, x)
    # Odd quarters of the circle swap sine and cosine; the quarter determines the signs.
    swapped = (octant & 2).view(np.uint32)
    mask = (0 - (swapped >> 1)).view(np.uint32)
    difference = sine.view(np.uint32) ^ cosine.view(np.uint32)
    difference &= mask
    sine_bits = sine.view(np.uint32) ^ difference
    cosine_bits = cosine.view(np.uint32) ^ difference
    quarter = octant.view(np.uint32)
    sine_bits ^= (quarter & 4) << 29
    cosine_bits ^= (~(quarter - 2) & 4) << 29
    return sine_bits.view(np.float32), cosine_bits.view(np.float32)


def _in_pairs(uniform: Array, transform: Callable[[Array, Array], tuple[Array, Array]]) -> None:
    """Replace blocks (n, 16) of uniform numbers by normal ones, in place.

    `transform` gets the numbers that give the radius, and those that give the angle, of many
    blocks at once.
    """
    # Eight numbers are one element, so that NumPy copies them at once.
    eight = np.dtype((np.void, HALF * uniform.itemsize))
    pairs = uniform.view(eight).reshape(-1, 2)
    for start in range(0, len(pairs), _BLOCKS):
        chunk = pairs[start : start + _BLOCKS]
        first, second = (chunk[:, half].copy().view(uniform.dtype) for half in (0, 1))
        cosine, sine = transform(first, second)
        chunk[:, 0] = cosine.view(eight)
        chunk[:, 1] = sine.view(eight)


def _floats(uniform: Array) -> None:
    """Turn uniform numbers in float32 into normal ones, in place."""
    horner = _Horner(min(uniform.size // 2, _BLOCKS * HALF))

    def transform(radius: Array, angle: Array) -> tuple[Array, Array]:
        np.subtract(_ONE, radius, out=radius)
        radius = _log(horner, radius)
        radius *= np.float32(-2)
        np.sqrt(radius, out=radius)
        angle *= TWO_PI
        sine, cosine = _sine_and_cosine(horner, angle)
        cosine *= radius
        sine *= radius
        # PyTorch adds the mean here, which leaves no negative zeros.
        cosine += _ZERO
        sine += _ZERO
        return cosine, sine

    _in_pairs(uniform, transform)


def by_libm(function: Callable[[float], float], x: Array) -> Array:
    """A function of the C library: NumPy has some of its own, which round otherwise."""
    elementwise = loops_for("elementwise", x.size)
    if elementwise is not None:
        found = np.empty(x.shape)
        getattr(elementwise, function.__name__)(x.reshape(-1), found.reshape(-1))
        return found
    return np.fromiter(map(function, x.reshape(-1).tolist()), np.float64, x.size).reshape(x.shape)


def _doubles(uniform: Array) -> None:
    """The same in float64."""

    def transform(radius: Array, angle: Array) -> tuple[Array, Array]:
        np.subtract(1, radius, out=radius)
        radius = by_libm(math.log, radius)
        radius *= -2
        np.sqrt(radius, out=radius)
        angle *= 2 * math.pi
        cosine = np.cos(angle)
        cosine *= radius
        sine = np.sin(angle, out=angle)
        sine *= radius
        return cosine, sine

    _in_pairs(uniform, transform)


def fused_floats(x: Array, factor: Any, summand: Any) -> Array:
    """x * factor + summand in float32, rounded once."""
    wide = x.astype(np.float64)
    wide *= float(factor)
    product = wide.copy()
    wide += float(summand)
    # Double rounding may round halves the wrong way; the last bit shows these cases.
    halfway = (wide.view(np.uint64) & 0x1FFFFFFF) == 0x10000000
    if halfway.any():
        exact = wide[halfway]
        lost = (product[halfway] - (exact - float(summand))) + 0.0
        toward = np.where(lost > 0, np.inf, -np.inf)
        wide[halfway] = np.where(lost == 0, exact, np.nextafter(exact, toward))
    return wide.astype(np.float32)


_SPLITTER: Final = float(2**27 + 1)
_LARGE: Final = 2.0**990


def _split(x: Any) -> tuple[Any, Any]:
    """A number of 53 bits as the sum of two of 26 (Dekker 1971)."""
    scaled = _SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high


def fused_doubles(x: Array, factor: float, summand: float) -> Array:
    """x * factor + summand in float64, rounded once: with the errors of both operations."""
    if factor == 1:
        return x + summand
    if summand == 0:
        return x * factor
    if abs(factor) > _LARGE:
        # Its parts would be infinite.
        return fused_doubles(x, factor * 2.0**-64, summand * 2.0**-64) * 2.0**64
    product = x * factor
    x_high, x_low = _split(x)
    high, low = _split(factor)
    error = ((x_high * high - product) + x_high * low + x_low * high) + x_low * low
    total = product + summand
    back = total - product
    error += (product - (total - back)) + (summand - back)
    fused: Array = total + error
    return fused


def stretched(x: Array, factor: Any, summand: Any) -> Array:
    """x * factor + summand, rounded once."""
    narrow = x.dtype == np.float32
    if narrow and factor == 1 and summand == 0:
        return x
    elementwise = loops_for("elementwise", x.size)
    if elementwise is not None:
        found = np.empty_like(x)
        elementwise.stretched(x, found, x.dtype.type(factor), x.dtype.type(summand))
        return found
    if narrow:
        return fused_floats(x, np.float32(factor), np.float32(summand))
    return fused_doubles(x, factor, summand)


def in_blocks(generator: CpuGenerator, count: int, mean: float, std: float, kind: Any) -> Array:
    """At least 16 normal numbers, as PyTorch fills contiguous memory.

    `kind` is float32 or float64; of 16 bits PyTorch makes float32 in blocks, too, but draws
    nothing for an incomplete block at first: see `in_blocks_of_float16`.
    """
    draw, transform = (
        (generator.floats, _floats) if kind == np.float32 else (generator.doubles, _doubles)
    )
    drawn = draw(count)
    whole = count - count % BLOCK
    transform(drawn[:whole])
    if whole < count:
        tail = draw(BLOCK)
        transform(tail)
        drawn[-BLOCK:] = tail
    return stretched(drawn, std, mean)


def in_blocks_of_float16(generator: CpuGenerator, count: int, mean: float, std: float) -> Array:
    """The same in float32, before they are rounded to 16 bits."""
    whole = count - count % BLOCK
    drawn = np.empty(whole if whole == count else whole + BLOCK, np.float32)
    if not generator.fill("normal_floats", drawn, float(mean), float(std)):
        drawn = generator.floats(drawn.size)
        _floats(drawn)
        drawn = stretched(drawn, std, mean)
    return drawn if whole == count else np.concatenate([drawn[: count - BLOCK], drawn[whole:]])


def one_by_one(generator: CpuGenerator, count: int) -> Array:
    """Normal numbers in float64, pair by pair; the generator keeps one that is left over."""
    drawn = np.empty(count)
    start = 0
    if count and generator.next_double is not None:
        drawn[0] = generator.next_double
        generator.next_double = None
        start = 1
    pairs = (count - start + 1) // 2
    if not pairs:
        return drawn
    made = np.empty(2 * pairs)
    if not generator.fill("normal_pairs", made):
        uniform = generator.doubles(2 * pairs)
        radius = np.sqrt(-2 * by_libm(math.log1p, -uniform[1::2]))
        angle = 2 * math.pi * uniform[::2]
        np.multiply(radius, np.cos(angle), out=made[::2])
        np.multiply(radius, np.sin(angle), out=made[1::2])
    drawn[start:] = made[: count - start]
    if made.size > count - start:
        generator.next_double = float(made[-1])
    return drawn
