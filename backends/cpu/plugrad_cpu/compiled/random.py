"""Random numbers by loops that make the twister's words and turn them into numbers in one pass.

Each loop takes the key and the position of a Mersenne Twister, fills `out` and returns the new
position; the key is changed in place. The numbers equal the results of `generator` and
`numerics.box_muller` bit by bit, because all operations round in the same way.

All loops are in this module, because numba recompiles a loop only when its own module has changed.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from plugrad_cpu.compiled.jit import bits_of, compiled, float_of, fused
from plugrad_cpu.numerics import box_muller

Array = np.ndarray[Any, Any]

_SIZE: Final = 624
_MIDDLE: Final = 397
_UPPER: Final = np.uint32(0x80000000)
_LOWER: Final = np.uint32(0x7FFFFFFF)
_MATRIX: Final = np.uint32(0x9908B0DF)
_ONE: Final = np.uint32(1)
_B: Final = np.uint32(0x9D2C5680)
_C: Final = np.uint32(0xEFC60000)
_U, _S, _T, _L = (np.uint32(shift) for shift in (11, 7, 15, 18))

# Words that are made at once: whole blocks of the twister and of normal numbers. They stay in the
# cache of the first level.
_WORDS: Final = 2 * _SIZE

_BITS24: Final = np.uint32(0xFFFFFF)
_BITS53: Final = np.uint64((1 << 53) - 1)
_HIGH: Final = np.uint64(32)
_UNIT_FLOAT: Final = np.float32(2.0**-24)
_UNIT_DOUBLE: Final = 2.0**-53


@compiled
def _twist(key: Array) -> None:
    for i in range(_SIZE - _MIDDLE):
        y = np.uint32((key[i] & _UPPER) | (key[i + 1] & _LOWER))
        key[i] = key[i + _MIDDLE] ^ (y >> _ONE) ^ (np.uint32(-(y & _ONE)) & _MATRIX)
    for i in range(_SIZE - _MIDDLE, _SIZE - 1):
        y = np.uint32((key[i] & _UPPER) | (key[i + 1] & _LOWER))
        key[i] = key[i + _MIDDLE - _SIZE] ^ (y >> _ONE) ^ (np.uint32(-(y & _ONE)) & _MATRIX)
    y = np.uint32((key[_SIZE - 1] & _UPPER) | (key[0] & _LOWER))
    key[_SIZE - 1] = key[_MIDDLE - 1] ^ (y >> _ONE) ^ (np.uint32(-(y & _ONE)) & _MATRIX)


@compiled
def _temper(key: Array, out: Array) -> None:
    for i in range(out.size):
        y = key[i]
        y = np.uint32(y ^ (y >> _U))
        y = np.uint32(y ^ ((y << _S) & _B))
        y = np.uint32(y ^ ((y << _T) & _C))
        out[i] = y ^ (y >> _L)


@compiled
def words(key: Array, position: int, out: Array) -> int:
    """The twister's words, as uint32."""
    done = 0
    while done < out.size:
        if position == _SIZE:
            _twist(key)
            position = 0
        count = min(out.size - done, _SIZE - position)
        # Slices make the loops start at 0, so that they are vectorized.
        _temper(key[position : position + count], out[done : done + count])
        done += count
        position += count
    return position


@compiled
def _long_word(words: Array, i: int) -> Any:
    return (np.uint64(words[2 * i]) << _HIGH) | np.uint64(words[2 * i + 1])


@compiled
def _double(words: Array, i: int) -> Any:
    return np.float64(np.int64(_long_word(words, i) & _BITS53)) * _UNIT_DOUBLE


@compiled
def _float(word: Any) -> Any:
    # As integers with a sign, which processors convert faster.
    return np.float32(np.int32(word & _BITS24)) * _UNIT_FLOAT


@compiled
def floats(key: Array, position: int, out: Array) -> int:
    """Multiples of 2**-24 in [0, 1), as float32."""
    made = np.empty(_WORDS, np.uint32)
    for start in range(0, out.size, _WORDS):
        part = out[start : start + _WORDS]
        position = words(key, position, made[: part.size])
        for i in range(part.size):
            part[i] = _float(made[i])
    return position


@compiled
def doubles(key: Array, position: int, out: Array) -> int:
    """Multiples of 2**-53 in [0, 1)."""
    made = np.empty(_WORDS, np.uint32)
    for start in range(0, out.size, _WORDS // 2):
        part = out[start : start + _WORDS // 2]
        position = words(key, position, made[: 2 * part.size])
        for i in range(part.size):
            part[i] = _double(made, i)
    return position


@compiled
def uniform_floats(key: Array, position: int, out: Array, low: float, high: float) -> int:
    """Numbers from `low` to before `high`, as float32."""
    first, end = np.float32(low), np.float32(high)
    span = np.float32(end - first)
    made = np.empty(_WORDS, np.uint32)
    for start in range(0, out.size, _WORDS):
        part = out[start : start + _WORDS]
        position = words(key, position, made[: part.size])
        for i in range(part.size):
            drawn = fused(_float(made[i]), span, first)
            part[i] = first if drawn == end else drawn
    return position


@compiled
def uniform_doubles(key: Array, position: int, out: Array, low: float, high: float) -> int:
    """The same in float64."""
    span = high - low
    made = np.empty(_WORDS, np.uint32)
    for start in range(0, out.size, _WORDS // 2):
        part = out[start : start + _WORDS // 2]
        position = words(key, position, made[: 2 * part.size])
        for i in range(part.size):
            drawn = fused(_double(made, i), span, low)
            part[i] = low if drawn == high else drawn
    return position


@compiled
def coins(key: Array, position: int, out: Array, probability: float) -> int:
    """1 with a probability, else 0."""
    made = np.empty(_WORDS, np.uint32)
    for start in range(0, out.size, _WORDS // 2):
        part = out[start : start + _WORDS // 2]
        position = words(key, position, made[: 2 * part.size])
        for i in range(part.size):
            part[i] = _double(made, i) < probability
    return position


@compiled
def exponential(key: Array, position: int, out: Array, scale: float) -> int:
    """Exponential numbers of the rate -1 / `scale`, as float64."""
    made = np.empty(_WORDS, np.uint32)
    for start in range(0, out.size, _WORDS // 2):
        part = out[start : start + _WORDS // 2]
        position = words(key, position, made[: 2 * part.size])
        for i in range(part.size):
            part[i] = math.log1p(-_double(made, i)) * scale
    return position


@compiled
def _halved(upper: Array, half: int, drawn: Array, places: Array) -> None:
    for i in range(places.size):
        places[i] += half if upper[places[i] + half - 1] < drawn[i] else 0


@compiled
def inverted(key: Array, position: int, out: Array, upper: Array) -> int:
    """Places in `upper`, which is sorted: the first element that is not below a uniform number."""
    made = np.empty(_WORDS, np.uint32)
    drawn = np.empty(_WORDS // 2)
    for start in range(0, out.size, _WORDS // 2):
        part = out[start : start + _WORDS // 2]
        position = words(key, position, made[: 2 * part.size])
        for i in range(part.size):
            drawn[i] = _double(made, i)
            part[i] = 0
        # Each step is one for many numbers: vectors have no branches to foresee.
        left = upper.size
        while left > 1:
            _halved(upper, left >> 1, drawn, part)
            left -= left >> 1
        _halved(upper, 1, drawn, part)
    return position


@compiled
def integers(key: Array, position: int, out: Array, span: int, low: int) -> int:
    """`low` and a word's remainder by `span`, which is at most 2**31."""
    divisor = np.uint32(span)
    # An estimate of the quotient that is right or one too small.
    inverse = np.uint64(min((1 << 32) // span, (1 << 32) - 1))
    made = np.empty(_WORDS, np.uint32)
    for start in range(0, out.size, _WORDS):
        part = out[start : start + _WORDS]
        position = words(key, position, made[: part.size])
        for i in range(part.size):
            quotient = np.uint32((np.uint64(made[i]) * inverse) >> _HIGH)
            rest = np.uint32(made[i] - np.uint32(quotient * divisor))
            rest = np.uint32(rest - divisor) if rest >= divisor else rest
            part[i] = np.int64(rest) + low
    return position


@compiled
def long_integers(key: Array, position: int, out: Array, span: Any, low: int) -> int:
    """`low` and the remainder by `span` (uint64) of words of 64 bits; 0 stands for 2**64."""
    made = np.empty(_WORDS, np.uint32)
    mask = np.uint64(span - np.uint64(1))
    power = (span & mask) == 0
    for start in range(0, out.size, _WORDS // 2):
        part = out[start : start + _WORDS // 2]
        position = words(key, position, made[: 2 * part.size])
        if power:
            for i in range(part.size):
                part[i] = np.int64(_long_word(made, i) & mask) + low
        else:
            for i in range(part.size):
                part[i] = np.int64(_long_word(made, i) % span) + low
    return position


@compiled
def permutation(key: Array, position: int, out: Array) -> int:
    """The numbers 0 to n - 1, each exchanged with one of those after it; n is below 2**32 / 20."""
    for i in range(out.size):
        out[i] = i
    made = np.empty(_WORDS, np.uint32)
    last = out.size - 1
    for start in range(0, last, _WORDS):
        count = min(_WORDS, last - start)
        position = words(key, position, made[:count])
        left = out.size - start
        for i in range(count):
            # Quotients of integers of 32 bits are right in float64; vectors have no others.
            divisor = np.int64(left - i)
            word = np.int64(made[i])
            made[i] = word - np.int64(np.float64(word) / np.float64(divisor)) * divisor
        for i in range(count):
            place = start + i
            other = place + np.int64(made[i])
            out[place], out[other] = out[other], out[place]
    return position


_LOG: Final = tuple(np.float32(number) for number in box_muller.LOG)
_SIN: Final = tuple(np.float32(number) for number in box_muller.SIN)
_COS: Final = tuple(np.float32(number) for number in box_muller.COS)
_LN2_LOW, _LN2_HIGH = box_muller.LN2_LOW, box_muller.LN2_HIGH
_PI_HIGH, _PI_MIDDLE, _PI_LOW = box_muller.PARTS_OF_PI
_FOUR_OVER_PI, _TWO_PI = box_muller.FOUR_OVER_PI, box_muller.TWO_PI
_ONE_BITS, _ROOT_HALF_BITS = np.int32(box_muller.ONE_BITS), np.int32(box_muller.ROOT_HALF_BITS)
_BLOCK, _HALF_BLOCK = box_muller.BLOCK, box_muller.HALF
_HALF, _FULL, _MINUS_TWO = np.float32(0.5), np.float32(1), np.float32(-2)


@compiled
def _log(u: Any) -> Any:
    """log(u) in float32, for 0 < u <= 1."""
    bits = np.int32(bits_of(u) + np.int32(_ONE_BITS - _ROOT_HALF_BITS))
    power = np.float32(np.int32((bits >> 23) - 127))
    u = float_of(np.int32((bits & 0x7FFFFF) + _ROOT_HALF_BITS)) - _FULL
    square = u * u
    y = fused(u, _LOG[0], _LOG[1])
    y = fused(u, y, _LOG[2])
    y = fused(u, y, _LOG[3])
    y = fused(u, y, _LOG[4])
    y = fused(u, y, _LOG[5])
    y = fused(u, y, _LOG[6])
    y = fused(u, y, _LOG[7])
    y = fused(u, y, _LOG[8])
    y = fused(y * u, square, power * _LN2_LOW) - square * _HALF
    return (u + y) + power * _LN2_HIGH


@compiled
def _sine_and_cosine(x: Any) -> Any:
    """In float32, of 0 <= x <= 2 pi."""
    octant = np.int32((np.int32(x * _FOUR_OVER_PI) + 1) & -2)
    multiple = np.float32(octant)
    x = (x + multiple * _PI_HIGH) + multiple * _PI_MIDDLE
    x = fused(multiple, _PI_LOW, x)
    square = x * x
    cosine = fused(fused(square, _COS[0], _COS[1]), square, _COS[2]) * square
    cosine = fused(cosine, square, -(square * _HALF)) + _FULL
    sine = fused(fused(square, _SIN[0], _SIN[1]), square, _SIN[2]) * square
    sine = fused(sine, x, x)
    # Odd quarters of the circle swap sine and cosine; the quarter determines the signs.
    sine_bits, cosine_bits = bits_of(sine), bits_of(cosine)
    swapped = (octant & 2) != 0
    first = cosine_bits if swapped else sine_bits
    second = sine_bits if swapped else cosine_bits
    first = np.int32(first ^ np.int32((octant & 4) << 29))
    second = np.int32(second ^ np.int32((~(octant - 2) & 4) << 29))
    return float_of(first), float_of(second)


@compiled
def _pairs_of_floats(radii: Array, angles: Array, mean: Any, std: Any) -> None:
    """Replace uniform numbers by normal ones: the cosines in `radii`, the sines in `angles`."""
    for i in range(radii.size):
        radius = math.sqrt(_MINUS_TWO * _log(_FULL - radii[i]))
        sine, cosine = _sine_and_cosine(angles[i] * _TWO_PI)
        radii[i] = fused(cosine * radius, std, mean)
        angles[i] = fused(sine * radius, std, mean)


@compiled
def _blocks_of_floats(
    made: Array, out: Array, radii: Array, angles: Array, mean: Any, std: Any
) -> None:
    # All first halves of blocks, then all second ones: one long loop is turned into vectors.
    for start in range(0, out.size, _BLOCK):
        for i in range(_HALF_BLOCK):
            radii[start // 2 + i] = _float(made[start + i])
            angles[start // 2 + i] = _float(made[start + _HALF_BLOCK + i])
    _pairs_of_floats(radii[: out.size // 2], angles[: out.size // 2], mean, std)
    for start in range(0, out.size, _BLOCK):
        for i in range(_HALF_BLOCK):
            out[start + i] = radii[start // 2 + i]
            out[start + _HALF_BLOCK + i] = angles[start // 2 + i]


@compiled
def _blocks_of_doubles(made: Array, out: Array, mean: float, std: float) -> None:
    for start in range(0, out.size, _BLOCK):
        for i in range(start, start + _HALF_BLOCK):
            radius = math.sqrt(-2 * math.log(1 - _double(made, i)))
            angle = 2 * math.pi * _double(made, i + _HALF_BLOCK)
            out[i] = fused(radius * math.cos(angle), std, mean)
            out[i + _HALF_BLOCK] = fused(radius * math.sin(angle), std, mean)


@compiled
def normal_floats(key: Array, position: int, out: Array, mean: float, std: float) -> int:
    """At least 16 normal numbers in float32, in blocks of 16; the last 16 are drawn again if the
    last block is incomplete."""
    centre, width = np.float32(mean), np.float32(std)
    made = np.empty(_WORDS, np.uint32)
    radii, angles = np.empty(_WORDS // 2, np.float32), np.empty(_WORDS // 2, np.float32)
    whole = out.size - out.size % _BLOCK
    for start in range(0, whole, _WORDS):
        count = min(_WORDS, whole - start)
        position = words(key, position, made[:count])
        _blocks_of_floats(made, out[start : start + count], radii, angles, centre, width)
    if whole < out.size:
        # What an incomplete block takes first is not used.
        position = words(key, position, made[: out.size - whole])
        position = words(key, position, made[:_BLOCK])
        _blocks_of_floats(made, out[out.size - _BLOCK :], radii, angles, centre, width)
    return position


@compiled
def normal_doubles(key: Array, position: int, out: Array, mean: float, std: float) -> int:
    """The same in float64."""
    made = np.empty(_WORDS, np.uint32)
    whole = out.size - out.size % _BLOCK
    # Whole blocks of normal numbers.
    step = _WORDS // 2 - _WORDS // 2 % _BLOCK
    for start in range(0, whole, step):
        count = min(step, whole - start)
        position = words(key, position, made[: 2 * count])
        _blocks_of_doubles(made, out[start : start + count], mean, std)
    if whole < out.size:
        position = words(key, position, made[: 2 * (out.size - whole)])
        position = words(key, position, made[: 2 * _BLOCK])
        _blocks_of_doubles(made, out[out.size - _BLOCK :], mean, std)
    return position


@compiled
def normal_pairs(key: Array, position: int, out: Array) -> int:
    """An even count of normal numbers in float64, pair by pair."""
    made = np.empty(_WORDS, np.uint32)
    for start in range(0, out.size, _WORDS // 2):
        part = out[start : start + _WORDS // 2]
        position = words(key, position, made[: 2 * part.size])
        for i in range(0, part.size, 2):
            radius = math.sqrt(-2 * math.log1p(-_double(made, i + 1)))
            angle = 2 * math.pi * _double(made, i)
            part[i] = radius * math.cos(angle)
            part[i + 1] = radius * math.sin(angle)
    return position
