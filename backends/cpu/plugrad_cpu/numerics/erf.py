"""The error function on arrays, by rational approximations: NumPy has none.

The error is below 4e-7 in float32 and 1e-15 in float64. Works on blocks that stay in the cache.

Sources: W. J. Cody, Rational Chebyshev Approximations for the Error Function, Mathematics of
Computation 23, 1969, for float64; the same form refitted on [-4, 4] for float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from plugrad.plugins.error_function import MIDDLE_P, MIDDLE_Q, NEAR_LIMIT, NEAR_P, NEAR_Q

Array = Any

# From here on erf is 1 in float64.
_ONE: Final = 6.0
# float32, all the way: erf(x) = x * P(x^2) / Q(x^2) for x clipped to [-4, 4].
_SINGLE_P: Final = (
    1.9867835157903637e-6,
    2.845666274639639e-4,
    3.8833618406645763e-3,
    5.3101800044189795e-2,
    1.935454358319491e-1,
    1.128379139318211e0,
)
_SINGLE_Q: Final = (
    3.742022546366187e-5,
    1.1855761157564817e-3,
    1.5207285898041958e-2,
    1.1535015903686298e-1,
    5.048577320286213e-1,
    1.0,
)
_BLOCK: Final = 1 << 14


def _horner(coefficients: Sequence[float], x: Array) -> Array:
    """A polynomial at `x`, coefficients from the highest power down."""
    result = x * x.dtype.type(coefficients[0])
    result += x.dtype.type(coefficients[1])
    for coefficient in coefficients[2:]:
        result *= x
        result += x.dtype.type(coefficient)
    return result


def _single(x: Array, out: Array) -> None:
    clipped = np.clip(x, x.dtype.type(-4), x.dtype.type(4))
    square = clipped * clipped
    ratio = _horner(_SINGLE_P, square)
    ratio /= _horner(_SINGLE_Q, square)
    ratio *= clipped
    np.clip(ratio, x.dtype.type(-1), x.dtype.type(1), out=out)


def _double(x: Array, out: Array) -> None:
    size = np.minimum(np.abs(x), _ONE)
    square = size * size
    near = _horner(NEAR_P, square)
    near /= _horner(NEAR_Q, square)
    near *= size
    far = _horner(MIDDLE_P, size)
    far /= _horner(MIDDLE_Q, size)
    far *= np.exp(np.negative(square, square))
    np.subtract(1.0, far, far)
    np.copysign(np.where(size <= NEAR_LIMIT, near, far), x, out)


def erf(x: Array) -> Array:
    """2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x; float32 and float64 arrays."""
    of_block = _double if x.dtype == np.float64 else _single
    out = np.empty(x.shape, x.dtype)
    source = x.reshape(-1)
    target = out.reshape(-1)
    for start in range(0, source.size, _BLOCK):
        of_block(source[start : start + _BLOCK], target[start : start + _BLOCK])
    return out
