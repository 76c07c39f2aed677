"""Kernels that make arrays from sizes and numbers, fill them, or draw random ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad.plugins.spacing import largest_below, spaced, triangle
from plugrad.plugins.strides import copy_order
from plugrad_cpu.generator import CpuGenerator
from plugrad_cpu.kernels.adapters import cut_down

Array = np.ndarray[Any, Any]
DTypeLike = Any
Shape = tuple[int, ...]

_NATIVE_FLOATS: Final = (np.dtype(np.float32), np.dtype(np.float64))
_HALF_VARIANCE: Final = 0.5**0.5


def empty(size: Shape, dtype: DTypeLike, device: int) -> Array:
    return np.empty(size, dtype)


def zeros(size: Shape, dtype: DTypeLike, device: int) -> Array:
    return np.zeros(size, dtype)


def ones(size: Shape, dtype: DTypeLike, device: int) -> Array:
    return np.ones(size, dtype)


def full(size: Shape, value: Any, dtype: DTypeLike, device: int) -> Array:
    result = np.empty(size, dtype)
    result[...] = cut_down(value, dtype)
    return result


def arange(start: Any, step: Any, count: int, dtype: DTypeLike, device: int) -> Array:
    """Computed in float64, or exactly for integers, and then cast."""
    if step == 0:
        return np.full(count, start).astype(dtype, copy=False)
    if isinstance(start, int) and isinstance(step, int):
        exact = np.arange(start, start + count * step, step, dtype=np.int64)
        return exact.astype(dtype, copy=False)
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


def _real_and_imaginary(draw: Callable[..., Any], size: Shape, dtype: DTypeLike) -> Array:
    part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
    result = np.empty(size, dtype)
    result.real = draw(size, part)
    result.imag = draw(size, part)
    return result


def _uniform(generator: CpuGenerator, size: Shape, dtype: DTypeLike) -> Any:
    if dtype.kind == "c":
        return _real_and_imaginary(generator.rng.random, size, dtype)
    if dtype in _NATIVE_FLOATS:
        return generator.rng.random(size, dtype)
    # Rounding to 16 bits may give 1, which is outside; the multiples of 2**-digits do not.
    digits = 11 if dtype.itemsize == 2 and dtype.kind == "f" else 8
    steps = generator.rng.integers(0, 1 << digits, size).astype(np.float32)
    return (steps * np.float32(0.5**digits)).astype(dtype)


def _normal(generator: CpuGenerator, size: Shape, dtype: DTypeLike) -> Any:
    if dtype.kind == "c":
        drawn = _real_and_imaginary(generator.rng.standard_normal, size, dtype)
        drawn *= _HALF_VARIANCE
        return drawn
    if dtype in _NATIVE_FLOATS:
        return generator.rng.standard_normal(size, dtype)
    return generator.rng.standard_normal(size, np.float32).astype(dtype)


def rand(size: Shape, generator: CpuGenerator, dtype: DTypeLike, device: int) -> Array:
    return np.asarray(_uniform(generator, size, dtype))


def randn(size: Shape, generator: CpuGenerator, dtype: DTypeLike, device: int) -> Array:
    return np.asarray(_normal(generator, size, dtype))


def _integers(generator: CpuGenerator, low: int, high: int, size: Shape) -> Array:
    return np.asarray(generator.rng.integers(low, high, size))


def randint(
    low: int, high: int, size: Shape, generator: CpuGenerator, dtype: DTypeLike, device: int
) -> Array:
    return _integers(generator, low, high, size).astype(dtype, copy=False)


def randperm(n: int, generator: CpuGenerator, dtype: DTypeLike, device: int) -> Array:
    return generator.rng.permutation(n).astype(dtype, copy=False)


def bernoulli(probabilities: Array, generator: CpuGenerator) -> Array:
    _check_probabilities(probabilities)
    drawn = generator.rng.random(probabilities.shape) < probabilities
    return np.asarray(drawn).astype(probabilities.dtype)


def _check_probabilities(probabilities: Array) -> None:
    if probabilities.size and not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")


def bernoulli_of_number(a: Array, probability: float, generator: CpuGenerator) -> Array:
    drawn = generator.rng.random(a.shape) < probability
    return np.asarray(drawn).astype(a.dtype)


def multinomial(weights: Array, count: int, replacement: bool, generator: CpuGenerator) -> Array:
    """With replacement by inverting the distribution function; without, by a race of exponential
    clocks that run at the speed of the weights (Efraimidis and Spirakis, 2006)."""
    rows = weights.astype(np.float64).reshape(-1, weights.shape[-1])
    if not (np.isfinite(rows) & (rows >= 0)).all():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    totals = rows.sum(1)
    if (totals <= 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    drawn = np.empty((len(rows), count), np.int64)
    if replacement:
        upper = np.cumsum(rows, 1)
        for row, (bounds, total) in enumerate(zip(upper, totals, strict=True)):
            marks = generator.rng.random(count) * total
            drawn[row] = np.searchsorted(bounds, marks, side="right")
    else:
        times = generator.rng.standard_exponential(rows.shape)
        finish = np.divide(times, rows, out=np.full(rows.shape, np.inf), where=rows > 0)
        drawn[...] = np.argsort(finish, 1, kind="stable")[:, :count]
    return drawn.reshape((*weights.shape[:-1], count))


def fill_(array: Array, value: Any) -> Array:
    array[...] = value if isinstance(value, np.ndarray) else cut_down(value, array.dtype)
    return array


def zero_(array: Array) -> Array:
    array.fill(0)
    return array


def uniform_(array: Array, low: float, high: float, generator: CpuGenerator) -> Array:
    drawn = _uniform(generator, array.shape, array.dtype) * (high - low) + low
    if array.dtype.kind == "c":
        array[...] = drawn
        return array
    last = largest_below(np, cut_down(high, array.dtype), cut_down(low, array.dtype))
    np.minimum(drawn, last, out=array, casting="unsafe")
    return array


def normal_(array: Array, mean: float, std: float, generator: CpuGenerator) -> Array:
    array[...] = _normal(generator, array.shape, array.dtype) * std + mean
    return array


def exponential_(array: Array, rate: float, generator: CpuGenerator) -> Array:
    array[...] = generator.rng.standard_exponential(array.shape) / rate
    return array


def bernoulli_(array: Array, probability: Any, generator: CpuGenerator) -> Array:
    if isinstance(probability, np.ndarray):
        _check_probabilities(probability)
        if np.broadcast_shapes(array.shape, probability.shape) != array.shape:
            raise RuntimeError(
                f"output with shape {list(array.shape)} doesn't match the broadcast shape of p, "
                f"{list(probability.shape)}"
            )
    array[...] = generator.rng.random(array.shape) < probability
    return array


def random_(array: Array, low: int, high: int, generator: CpuGenerator) -> Array:
    array[...] = _integers(generator, low, high, array.shape)
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
    "rand": rand,
    "randn": randn,
    "randint": randint,
    "randperm": randperm,
    "bernoulli": bernoulli,
    "bernoulli.p": bernoulli_of_number,
    "multinomial": multinomial,
    "fill_": fill_,
    "zero_": zero_,
    "uniform_": uniform_,
    "normal_": normal_,
    "exponential_": exponential_,
    "bernoulli_": bernoulli_,
    "random_": random_,
}
