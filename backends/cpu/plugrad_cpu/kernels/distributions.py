"""Kernels that draw from distributions by rejection: PyTorch's numbers, bit by bit.

How many numbers an element takes from the generator depends on the numbers, so elements are drawn
one by one.

Sources: Hörmann, The transformed rejection method for generating Poisson random variables (1993)
and The generation of binomial random variates (1993); Marsaglia and Tsang, A simple method for
generating gamma variables (2000); Devroye, Non-uniform random variate generation (1986), X.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from plugrad_cpu.generator import CpuGenerator
from plugrad_cpu.kernels.random import narrowed, write
from plugrad_cpu.numerics.box_muller import by_libm, one_by_one, stretched

Array = np.ndarray[Any, Any]

# log(k!) without its approximation by Stirling, for k = 0, 1, ...
_STIRLING_TAILS: Final = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
    0.00925546218271273, 0.00833056343336287,
)  # fmt: skip
# PyTorch has these constants in float32.
_THIRD: Final = float(np.float32(1) / np.float32(3))
_SQUEEZE: Final = float(np.float32(0.0331))


def cauchy_(array: Array, median: float, sigma: float, generator: CpuGenerator) -> Array:
    drawn = by_libm(math.tan, math.pi * (generator.doubles(array.size) - 0.5))
    return write(array, narrowed(stretched(drawn, sigma, median), array.dtype))


def log_normal_(array: Array, mean: float, std: float, generator: CpuGenerator) -> Array:
    logarithms = stretched(one_by_one(generator, array.size), std, mean)
    try:
        drawn = by_libm(math.exp, logarithms)
    except OverflowError:
        drawn = np.exp(logarithms)
    return write(array, narrowed(drawn, array.dtype))


def geometric_(array: Array, p: float, generator: CpuGenerator) -> Array:
    drawn = generator.doubles(array.size)
    zero = drawn == 0
    drawn[zero] = 1
    logarithms = by_libm(math.log, drawn)
    logarithms[zero] = -math.inf
    return write(array, narrowed(np.ceil(logarithms / math.log1p(-p)), array.dtype))


def _each(
    generator: CpuGenerator,
    sample: Callable[..., float],
    dtype: Any,
    *parameters: Array,
) -> Array:
    """`sample(uniform, *values)` for each element; `uniform()` is a number in [0, 1)."""
    stream = generator.one_by_one()
    drawn = np.empty(parameters[0].shape)
    flat = drawn.reshape(-1)
    try:
        for place, values in enumerate(
            zip(*(parameter.reshape(-1).tolist() for parameter in parameters), strict=True)
        ):
            flat[place] = sample(stream, *values)
    finally:
        stream.close()
    result: Array = narrowed(drawn, dtype)
    return result


def _widened(array: Array) -> Array:
    """16 bits as float32: Python has no floats of bfloat16."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array


def poisson(rates: Array, generator: CpuGenerator) -> Array:
    return _each(generator, _poisson, rates.dtype, _widened(rates))


def _poisson(uniform: Iterator[float], rate: float) -> float:
    if not rate >= 0:
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    if rate == math.inf:
        return rate
    if rate >= 10:
        return _large_poisson(uniform, rate)
    if rate == 0:
        return 0
    # Uniform numbers are multiplied until the product is small enough.
    smallest = math.exp(-rate)
    product, count = 1.0, 0
    while True:
        product *= next(uniform)
        if product <= smallest:
            return count
        count += 1


def _large_poisson(uniform: Iterator[float], rate: float) -> float:
    """Hörmann's PTRS."""
    logarithm = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    inside = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = next(uniform) - 0.5
        v = next(uniform)
        distance = 0.5 - abs(u)
        if distance == 0:
            continue
        k = math.floor((2 * a / distance + b) * u + rate + 0.43)
        if distance >= 0.07 and v <= inside:
            return k
        if k < 0 or (distance < 0.013 and v > distance):
            continue
        left = _log(v) + math.log(inverse_alpha) - math.log(a / (distance * distance) + b)
        if left <= -rate + k * logarithm - math.lgamma(k + 1.0):
            return k


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


def binomial(count: Array, prob: Array, generator: CpuGenerator) -> Array:
    dtype = count.dtype
    count, prob = _widened(count), np.broadcast_to(_widened(prob), count.shape)
    rounded = _single if count.dtype == np.float32 else float

    def sample(uniform: Iterator[float], n: float, p: float) -> float:
        return _binomial(uniform, n, p, rounded)

    return _each(generator, sample, dtype, count, prob)


def _single(x: float) -> float:
    """A number as float32 has it: PyTorch computes some steps in the dtype of the tensors."""
    return float(np.float32(x))


Rounded = Callable[[float], float]


def _binomial(uniform: Iterator[float], n: float, p: float, rounded: Rounded) -> float:
    if n <= 0 or p <= 0:
        return 0
    if p >= 1:
        return n
    if math.isnan(p) or math.isnan(n):
        return math.nan
    if p > 0.5:
        return n - _rare(uniform, n, rounded(1 - p), rounded)
    return _rare(uniform, n, p, rounded)


def _rare(uniform: Iterator[float], n: float, p: float, rounded: Rounded) -> float:
    """Numbers for a probability of at most one half."""
    if rounded(n * p) >= 10:
        return _many_successes(uniform, n, p, rounded)
    # Waiting times until each success are added.
    scale = rounded(math.log1p(-p))
    waited, successes = 0.0, 0
    while True:
        waited += math.ceil(max(_log(next(uniform)), -1e300) / scale)
        if waited > n:
            return successes
        successes += 1


def _many_successes(uniform: Iterator[float], n: float, p: float, rounded: Rounded) -> float:
    """Hörmann's BTRS."""
    rest = rounded(1 - p)
    std = rounded(math.sqrt(rounded(rounded(n * p) * rest)))
    b = 1.15 + 2.53 * std
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre = rounded(n * p) + 0.5
    inside = 0.92 - 4.2 / b
    odds = rounded(p / rest)
    alpha = (2.83 + 5.1 / b) * std
    mode = math.floor(rounded(rounded(n + 1) * p))
    while True:
        u = next(uniform) - 0.5
        v = next(uniform)
        distance = 0.5 - abs(u)
        if distance == 0:
            continue
        k = rounded(math.floor((2 * a / distance + b) * u + centre))
        if k < 0 or k > n:
            continue
        if distance >= 0.07 and v <= inside:
            return k
        left = rounded(rounded(n - k) + 1)
        bound = (
            (mode + 0.5) * math.log((mode + 1) / (odds * (n - mode + 1)))
            + rounded(n + 1) * math.log((n - mode + 1) / left)
            + (k + 0.5) * math.log(odds * left / rounded(k + 1))
            + _stirling_tail(mode)
            + _stirling_tail(n - mode)
            - _stirling_tail(k)
            - _stirling_tail(rounded(n - k))
        )
        if _log(v * alpha / (a / (distance * distance) + b)) <= bound:
            return k


def _stirling_tail(k: float) -> float:
    if k < len(_STIRLING_TAILS):
        return _STIRLING_TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


class _Normal:
    """Normal numbers one by one, from the same uniform ones; the generator keeps what is left."""

    def __init__(self, generator: CpuGenerator) -> None:
        self.generator = generator

    def draw(self, uniform: Iterator[float]) -> float:
        kept = self.generator.next_double
        if kept is not None:
            self.generator.next_double = None
            return kept
        u, v = next(uniform), next(uniform)
        radius = math.sqrt(-2 * math.log1p(-v))
        angle = 2 * math.pi * u
        self.generator.next_double = radius * math.sin(angle)
        return radius * math.cos(angle)


def _gamma_sampler(
    generator: CpuGenerator, rounded: Rounded
) -> Callable[[Iterator[float], float], float]:
    """Marsaglia and Tsang's method for any shape `alpha`."""
    normal = _Normal(generator)

    def sample(uniform: Iterator[float], alpha: float) -> float:
        scale = 1.0
        if alpha == 0:
            return 0.0
        if not alpha > 0:
            return math.nan
        if alpha < 1:
            scale = math.pow(1 - next(uniform), rounded(1 / alpha))
            alpha = rounded(alpha + 1)
        d = rounded(alpha - _THIRD)
        c = 1 / math.sqrt(9 * d)
        while True:
            x = normal.draw(uniform)
            y = 1 + c * x
            if y <= 0:
                continue
            v = y * y * y
            u = 1 - next(uniform)
            square = x * x
            if u < 1 - _SQUEEZE * square * square or math.log(u) < 0.5 * square + d * (
                1 - v + math.log(v)
            ):
                return scale * d * v

    return sample


def standard_gamma(alpha: Array, generator: CpuGenerator) -> Array:
    rounded = _single if alpha.dtype == np.float32 else float
    drawn = _each(generator, _gamma_sampler(generator, rounded), alpha.dtype, alpha)
    return np.asarray(np.maximum(drawn, np.finfo(alpha.dtype).tiny))


# How many numbers PyTorch adds at once, and in how many sums.
_LANES: Final = 4
_SUMS: Final = 4


def _totals(rows: Array) -> Array:
    """Sums along the last dimension, in the order in which PyTorch adds up to some hundred numbers
    in float64."""
    length = rows.shape[-1]
    whole = length - length % _LANES
    count = whole // _LANES
    vectors = rows[..., :whole].reshape(*rows.shape[:-1], count, _LANES)
    even = count - count % _SUMS
    sums = [_in_turn(vectors[..., start:even:_SUMS, :]) for start in range(_SUMS)]
    lanes = _in_turn(np.stack([sums[0], *np.moveaxis(vectors[..., even:, :], -2, 0)], -2))
    lanes = _in_turn(np.stack([lanes, *sums[1:]], -2))
    rest = np.concatenate([rows[..., whole:], lanes], -1)
    return _in_turn(rest[..., None])


def _in_turn(rows: Array) -> Array:
    """The sum along the last dimension but one, one after the other."""
    total = np.zeros((*rows.shape[:-2], rows.shape[-1]))
    for place in range(rows.shape[-2]):
        total += rows[..., place, :]
    return total


def sample_dirichlet(alpha: Array, generator: CpuGenerator) -> Array:
    if alpha.ndim == 0:
        return sample_dirichlet(alpha.reshape(1), generator).reshape(())
    double = np.dtype(np.float64)
    drawn = _each(generator, _gamma_sampler(generator, float), double, alpha.astype(double))
    drawn = np.maximum(drawn, np.finfo(double).tiny)
    shares = (drawn / _totals(drawn)).astype(alpha.dtype)
    one = np.ones((), alpha.dtype)
    below = np.nextafter(one, np.zeros((), alpha.dtype))
    return np.asarray(np.minimum(np.maximum(shares, np.finfo(alpha.dtype).tiny), below))


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "cauchy_": cauchy_,
    "log_normal_": log_normal_,
    "geometric_": geometric_,
    "poisson": poisson,
    "binomial": binomial,
    "_standard_gamma": standard_gamma,
    "_sample_dirichlet": sample_dirichlet,
}
