"""Kernels that draw random numbers: PyTorch's, bit by bit, for the same seed.

Each element takes one or two words of the generator, in the order of the elements in memory.
docs/random.md says where PyTorch itself differs from one processor to another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad_cpu.generator import CpuGenerator
from plugrad_cpu.numerics.box_muller import (
    BLOCK,
    by_libm,
    in_blocks,
    in_blocks_of_float16,
    one_by_one,
    stretched,
)
from plugrad_cpu.numerics.permutations import exchanged

Array = np.ndarray[Any, Any]
DTypeLike = Any
Shape = tuple[int, ...]

_FLOAT32: Final = np.dtype(np.float32)
_FLOAT64: Final = np.dtype(np.float64)

# From so many integers on, each takes two words.
_MANY_INTEGERS: Final = 1 << 28
# How many integers are made at once: they fit into the cache.
_CHUNK: Final = 1 << 15
# From so many elements on, a permutation's random numbers have 64 bits.
_LONG_PERMUTATION: Final = (2**32 - 1) // 20
_WORD: Final = 1 << 64
# From so many elements on, a permutation is found by whole passes.
_LONG: Final = 512
# The bits of a float64 that float32 lacks, and how far from their middle its rounding is in doubt.
_BELOW_FLOAT32: Final = (1 << 29) - 1
_DOUBTFUL: Final = 64
_NORMAL_FLOAT32: Final = 2.0**-120


def in_memory_order(array: Array) -> Array:
    """A view whose elements, row by row, are in the order in which PyTorch fills them."""
    if array.flags.c_contiguous:
        return array
    strides = array.strides
    return array.transpose(sorted(range(array.ndim), key=lambda dim: -strides[dim]))


def write(array: Array, drawn: Array) -> Array:
    """Put numbers into an array in the order of its memory."""
    target = in_memory_order(array)
    target[...] = drawn.reshape(target.shape)
    return array


def narrowed(drawn: Any, dtype: DTypeLike) -> Any:
    """Numbers in another dtype; those of 16 bits get there by way of float32."""
    if dtype.itemsize == 2 and dtype.kind not in "iu" and drawn.dtype == _FLOAT64:
        drawn = drawn.astype(_FLOAT32)
    return drawn.astype(dtype, copy=False)


def parts_of(array: Array) -> Array:
    """Complex numbers as real ones, with a last dimension of real and imaginary part."""
    part = array.dtype.itemsize // 2
    return np.lib.stride_tricks.as_strided(
        array.real, (*array.shape, 2), (*array.strides, part), writeable=True
    )


def uniform_(array: Array, low: float, high: float, generator: CpuGenerator) -> Array:
    if array.dtype.kind == "c":
        if array.size:
            uniform_(parts_of(array), low, high, generator)
        return array
    dtype = array.dtype
    count = array.size
    if dtype == _FLOAT64:
        drawn = stretched(generator.doubles(count), high - low, low)
    else:
        first, end = np.float32(low), np.float32(high)
        drawn = narrowed(stretched(generator.floats(count), end - first, first), dtype)
    if count:
        # What was rounded up to the end, which is outside.
        start, stop = (narrowed(np.float64(bound), dtype) for bound in (low, high))
        np.copyto(drawn, start, where=drawn == stop)
    return write(array, drawn)


def rand(size: Shape, generator: CpuGenerator, dtype: DTypeLike, device: int) -> Array:
    if dtype == _FLOAT32:
        return generator.floats(math.prod(size)).reshape(size)
    if dtype == _FLOAT64:
        return generator.doubles(math.prod(size)).reshape(size)
    return uniform_(np.empty(size, dtype), 0.0, 1.0, generator)


def normal_(array: Array, mean: float, std: float, generator: CpuGenerator) -> Array:
    if array.dtype.kind == "c":
        # Half of the variance is in each part.
        if array.size:
            normal_(parts_of(array), mean, std / math.sqrt(2), generator)
        return array
    dtype, count = array.dtype, array.size
    if count < BLOCK or not array.flags.c_contiguous:
        drawn = stretched(one_by_one(generator, count), std, mean)
    elif dtype in (_FLOAT32, _FLOAT64):
        drawn = in_blocks(generator, count, mean, std, dtype)
    else:
        drawn = in_blocks_of_float16(generator, count, mean, std)
    return write(array, narrowed(drawn, dtype))


def randn(size: Shape, generator: CpuGenerator, dtype: DTypeLike, device: int) -> Array:
    count = math.prod(size)
    if dtype == _FLOAT32 and count >= BLOCK:
        return in_blocks(generator, count, 0.0, 1.0, dtype).reshape(size)
    return normal_(np.empty(size, dtype), 0.0, 1.0, generator)


def _between(generator: CpuGenerator, low: int, high: int, count: int) -> Array:
    """Integers from `low` to before `high`, as int64; 2**64 of them are all there are."""
    span = high - low
    if span >= _WORD:
        return generator.long_words(count).view(np.int64)
    if span >= _MANY_INTEGERS:
        drawn = generator.long_words(count)
        drawn %= np.uint64(span)
    else:
        drawn = np.empty(count, np.uint64)
        divisor = np.uint32(span)
        for start in range(0, count, _CHUNK):
            part = drawn[start : start + _CHUNK]
            words = generator.words(part.size)
            # NumPy divides by a number faster than it computes remainders.
            whole = words // divisor
            whole *= divisor
            np.subtract(words, whole, out=part, dtype=np.uint32)
    if low:
        drawn += np.uint64(low % _WORD)
    return drawn.view(np.int64)


def randint(
    low: int, high: int, size: Shape, generator: CpuGenerator, dtype: DTypeLike, device: int
) -> Array:
    drawn = _between(generator, low, high, math.prod(size)).reshape(size)
    return _as_numbers(drawn, dtype)


def _as_numbers(drawn: Array, dtype: DTypeLike) -> Array:
    """Integers in a dtype; those of 16 bits with fractions get there by way of float32."""
    if dtype.itemsize == 2 and dtype.kind not in "iu":
        drawn = drawn.astype(_FLOAT32)
    return drawn.astype(dtype, copy=False)


def random_between_(array: Array, low: int, high: int, generator: CpuGenerator) -> Array:
    return write(array, _as_numbers(_between(generator, low, high, array.size), array.dtype))


def random_(array: Array, low: int, high: int, generator: CpuGenerator) -> Array:
    """Integers from 0 to the largest: two words for those of 64 bits, else one."""
    dtype = array.dtype
    if dtype == np.int64 or dtype == _FLOAT64:
        drawn = generator.long_words(array.size) % np.uint64(high)
    else:
        drawn = generator.words(array.size).astype(np.uint64) % np.uint64(high)
    return write(array, _as_numbers(drawn, dtype))


def randperm(n: int, generator: CpuGenerator, dtype: DTypeLike, device: int) -> Array:
    """Each place in turn gets one of the numbers that are left (Fisher and Yates)."""
    if n < 2:
        return np.arange(n).astype(dtype)
    draw = generator.words if n < _LONG_PERMUTATION else generator.long_words
    drawn = draw(n - 1)
    left = np.arange(n, 1, -1, dtype=drawn.dtype)
    np.remainder(drawn, left, out=drawn)
    if n < _LONG:
        order = list(range(n))
        for place, distance in enumerate(drawn.tolist()):
            other = place + distance
            order[place], order[other] = order[other], order[place]
        return _as_numbers(np.array(order, np.int64), dtype)
    return _as_numbers(exchanged(drawn), dtype)


def _check_probabilities(probabilities: Array) -> None:
    if probabilities.size and not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")


def bernoulli_(array: Array, probability: Any, generator: CpuGenerator) -> Array:
    if not isinstance(probability, np.ndarray):
        return write(array, generator.doubles(array.size) < probability)
    if np.broadcast_shapes(array.shape, probability.shape) != array.shape:
        raise RuntimeError(
            f"output with shape {list(array.shape)} doesn't match the broadcast shape of p, "
            f"{list(probability.shape)}"
        )
    if not array.size:
        return array
    _check_probabilities(probability)
    draw = generator.doubles if probability.dtype == _FLOAT64 else generator.floats
    marks = np.empty_like(array, draw(0).dtype)
    write(marks, draw(array.size))
    np.copyto(array, marks < probability, casting="unsafe")
    return array


def bernoulli(probabilities: Array, generator: CpuGenerator) -> Array:
    result = np.empty(probabilities.shape, probabilities.dtype)
    return bernoulli_(result, probabilities, generator)


def bernoulli_of_number(a: Array, probability: float, generator: CpuGenerator) -> Array:
    return bernoulli_(np.empty(a.shape, a.dtype), probability, generator)


def kept_by_dropout(generator: CpuGenerator, x: Array, probability: float) -> Array:
    """The mask of the elements that dropout with a probability keeps; it lies in memory like x."""
    marks = np.empty_like(x, np.float64)
    write(marks, generator.doubles(x.size))
    return marks < 1 - probability


def exponentials(generator: CpuGenerator, count: int, rate: float) -> Array:
    """In float64."""
    drawn = by_libm(math.log1p, -generator.doubles(count))
    drawn *= -1 / rate
    return drawn


def narrow_exponentials(generator: CpuGenerator, count: int, rate: float) -> Array:
    """The same, right once they are rounded to float32: NumPy's logarithm is faster, and its last
    bits matter only next to the middle between two numbers of float32."""
    uniform = generator.doubles(count)
    np.negative(uniform, out=uniform)
    drawn = np.log1p(uniform)
    drawn *= -1 / rate
    places = drawn.view(np.uint64) & np.uint64(_BELOW_FLOAT32)
    places -= np.uint64((_BELOW_FLOAT32 + 1) // 2 - _DOUBTFUL)
    doubtful = (places < 2 * _DOUBTFUL) | (drawn < _NORMAL_FLOAT32)
    if doubtful.any():
        drawn[doubtful] = by_libm(math.log1p, uniform[doubtful]) * (-1 / rate)
    return drawn


def exponential_(array: Array, rate: float, generator: CpuGenerator) -> Array:
    draw = exponentials if array.dtype == _FLOAT64 else narrow_exponentials
    return write(array, narrowed(draw(generator, array.size, rate), array.dtype))


def _check_weights(rows: Array, replacement: bool) -> None:
    if replacement:
        if not (rows >= 0).all():
            raise RuntimeError(
                "invalid multinomial distribution (encountering probability entry < 0)"
            )
        if not np.isfinite(rows).all():
            raise RuntimeError(
                "invalid multinomial distribution (encountering probability entry = infinity or "
                "NaN)"
            )
    elif not (np.isfinite(rows) & (rows >= 0)).all():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if rows.size and not (rows.sum(1) > 0).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def multinomial(weights: Array, count: int, replacement: bool, generator: CpuGenerator) -> Array:
    """With replacement by inverting the distribution function; without, and for one draw, by a
    race of exponential clocks that run at the speed of the weights (Efraimidis and Spirakis,
    2006)."""
    narrow = weights.astype(_FLOAT32) if weights.dtype.itemsize == 2 else weights
    rows = narrow.reshape(-1, weights.shape[-1])
    inverting = replacement and count > 1
    _check_weights(rows, inverting)
    if inverting:
        drawn = np.empty((len(rows), count), np.int64)
        for row, shares in enumerate(rows):
            upper = np.cumsum(shares, dtype=shares.dtype)
            upper /= upper[-1]
            upper[-1] = 1
            drawn[row] = np.searchsorted(upper.astype(_FLOAT64), generator.doubles(count))
    else:
        draw = exponentials if weights.dtype == _FLOAT64 else narrow_exponentials
        times = narrowed(draw(generator, rows.size, 1.0), weights.dtype)
        speeds = rows / times.reshape(rows.shape).astype(rows.dtype)
        speeds = speeds.astype(weights.dtype).astype(rows.dtype)
        if count == 1:
            drawn = np.argmax(speeds, 1)
        else:
            drawn = np.argsort(-speeds, 1, kind="stable")[:, :count]
    return drawn.astype(np.int64, copy=False).reshape((*weights.shape[:-1], count))


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "rand": rand,
    "randn": randn,
    "randint": randint,
    "randperm": randperm,
    "bernoulli": bernoulli,
    "bernoulli.p": bernoulli_of_number,
    "multinomial": multinomial,
    "uniform_": uniform_,
    "normal_": normal_,
    "exponential_": exponential_,
    "bernoulli_": bernoulli_,
    "random_": random_,
    "random_.from": random_between_,
    "random_.to": random_between_,
}
