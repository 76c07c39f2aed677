"""Kernels that draw random numbers: PyTorch's, bit by bit, for the same seed.

Each element takes one or two words of the generator, in the order of the elements in memory.
docs/random.md lists where PyTorch itself differs between processors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad_cpu.compiled import loops_for
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
_WIDE: Final = (_FLOAT32, _FLOAT64)

# From so many integers on, each takes two words.
_MANY_INTEGERS: Final = 1 << 28
# How many integers are made at once: they fit into the cache.
_CHUNK: Final = 1 << 15
# From so many elements on, a permutation's random numbers have 64 bits.
_LONG_PERMUTATION: Final = (2**32 - 1) // 20
_WORD: Final = 1 << 64
# Up to here compiled loops find remainders of words of 32 bits.
_LARGEST_SPAN: Final = 1 << 31
# From so many elements on, a permutation is found by whole passes, and rows are not sorted if few
# of their elements are needed.
_LONG: Final = 512
# One in so many elements is a sample that estimates the bound of the needed ones.
_SAMPLED: Final = 16
# The bits of a float64 that float32 lacks, and how far from their middle its rounding is in doubt.
_BELOW_FLOAT32: Final = (1 << 29) - 1
_DOUBTFUL: Final = 64
_NORMAL_FLOAT32: Final = 2.0**-120


def in_memory_order(array: Array) -> Array:
    """A view with its elements, row by row, in the order in which PyTorch fills them."""
    if array.flags.c_contiguous:
        return array
    strides = array.strides
    return array.transpose(sorted(range(array.ndim), key=lambda dim: -strides[dim]))


def write(array: Array, drawn: Array) -> Array:
    """Put numbers into an array in the order of its memory."""
    target = in_memory_order(array)
    target[...] = drawn.reshape(target.shape)
    return array


def filled(array: Array, generator: CpuGenerator, loop: str, *arguments: object) -> bool:
    """Have a compiled loop fill an array; False where NumPy has to."""
    dtype = array.dtype
    if loops_for("random", array.size) is None or not (dtype in _WIDE or dtype.kind in "iub"):
        return False
    target = in_memory_order(array)
    if target.flags.carray:
        return generator.fill(loop, target.reshape(-1), *arguments)
    drawn = np.empty(array.size, dtype)
    generator.fill(loop, drawn, *arguments)
    write(array, drawn)
    return True


def narrowed(drawn: Any, dtype: DTypeLike) -> Any:
    """Numbers in another dtype; 16-bit ones are converted through float32."""
    if dtype.itemsize == 2 and dtype.kind not in "iu" and drawn.dtype == _FLOAT64:
        drawn = drawn.astype(_FLOAT32)
    if dtype == np.float16 and drawn.dtype == _FLOAT32:
        elementwise = loops_for("elementwise", drawn.size)
        if elementwise is not None:
            found = np.empty(drawn.shape, dtype)
            elementwise.halves(drawn.reshape(-1), found.reshape(-1).view(np.uint16))
            return found
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
    if dtype in _WIDE:
        loop = "uniform_floats" if dtype == _FLOAT32 else "uniform_doubles"
        if filled(array, generator, loop, float(low), float(high)):
            return array
    if dtype == _FLOAT64:
        drawn = stretched(generator.doubles(count), high - low, low)
    else:
        first, end = np.float32(low), np.float32(high)
        drawn = narrowed(stretched(generator.floats(count), end - first, first), dtype)
    if count:
        # What was rounded up to the end, which is outside.
        start, stop = (narrowed(np.float64(bound), dtype) for bound in (low, high))
        if dtype.itemsize == 2 and stop:
            # Their bits are compared faster; only zero has more than one pattern.
            rounded = drawn.view(np.uint16) == stop.view(np.uint16)
        else:
            rounded = drawn == stop
        np.copyto(drawn, start, where=rounded)
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
    elif dtype in _WIDE:
        loop = "normal_floats" if dtype == _FLOAT32 else "normal_doubles"
        if filled(array, generator, loop, float(mean), float(std)):
            return array
        drawn = in_blocks(generator, count, mean, std, dtype)
    else:
        drawn = in_blocks_of_float16(generator, count, mean, std)
    return write(array, narrowed(drawn, dtype))


def randn(size: Shape, generator: CpuGenerator, dtype: DTypeLike, device: int) -> Array:
    count = math.prod(size)
    if dtype == _FLOAT32 and count >= BLOCK and loops_for("random", count) is None:
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


def _filled_with_remainders(
    array: Array, generator: CpuGenerator, span: int, low: int, long: bool
) -> bool:
    """The same by a compiled loop, if it is as in `filled`."""
    if array.dtype.kind == "b":
        return False
    if span >= _WORD:
        return filled(array, generator, "long_integers", np.uint64(0), 0)
    # As int64 has it: sums of integers wrap around.
    low = (low + _WORD // 2) % _WORD - _WORD // 2
    if long:
        return filled(array, generator, "long_integers", np.uint64(span), low)
    return span <= _LARGEST_SPAN and filled(array, generator, "integers", span, low)


def randint(
    low: int, high: int, size: Shape, generator: CpuGenerator, dtype: DTypeLike, device: int
) -> Array:
    return random_between_(np.empty(size, dtype), low, high, generator)


def _as_numbers(drawn: Array, dtype: DTypeLike) -> Array:
    """Integers in a dtype; 16-bit floats are converted through float32."""
    if dtype.itemsize == 2 and dtype.kind not in "iu":
        drawn = drawn.astype(_FLOAT32)
    return drawn.astype(dtype, copy=False)


def random_between_(array: Array, low: int, high: int, generator: CpuGenerator) -> Array:
    span = high - low
    if _filled_with_remainders(array, generator, span, low, span >= _MANY_INTEGERS):
        return array
    return write(array, _as_numbers(_between(generator, low, high, array.size), array.dtype))


def random_(array: Array, low: int, high: int, generator: CpuGenerator) -> Array:
    """Integers from 0 to the largest: two words for 64-bit ones, else one."""
    dtype = array.dtype
    long = dtype == np.int64 or dtype == _FLOAT64
    if _filled_with_remainders(array, generator, high, 0, long):
        return array
    if long:
        drawn = generator.long_words(array.size) % np.uint64(high)
    else:
        drawn = generator.words(array.size).astype(np.uint64) % np.uint64(high)
    return write(array, _as_numbers(drawn, dtype))


def randperm(n: int, generator: CpuGenerator, dtype: DTypeLike, device: int) -> Array:
    """Each place in turn gets one of the numbers that are left (Fisher and Yates)."""
    if n < 2:
        return np.arange(n).astype(dtype)
    if n < _LONG_PERMUTATION:
        order = np.empty(n, np.int64)
        if filled(order, generator, "permutation"):
            return _as_numbers(order, dtype)
    draw = generator.words if n < _LONG_PERMUTATION else generator.long_words
    drawn = draw(n - 1)
    left = np.arange(n, 1, -1, dtype=drawn.dtype)
    np.remainder(drawn, left, out=drawn)
    if n < _LONG:
        places = list(range(n))
        for place, distance in enumerate(drawn.tolist()):
            other = place + distance
            places[place], places[other] = places[other], places[place]
        return _as_numbers(np.array(places, np.int64), dtype)
    return _as_numbers(exchanged(drawn), dtype)


def _check_probabilities(probabilities: Array) -> None:
    if probabilities.size and not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")


def bernoulli_(array: Array, probability: Any, generator: CpuGenerator) -> Array:
    if not isinstance(probability, np.ndarray):
        if filled(array, generator, "coins", float(probability)):
            return array
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
    """The mask of the elements that dropout with a probability keeps, in the memory layout of x."""
    kept = np.empty_like(x, np.bool_)
    return bernoulli_(kept, 1 - probability, generator)


def exponentials(generator: CpuGenerator, count: int, rate: float) -> Array:
    """In float64."""
    drawn = by_libm(math.log1p, -generator.doubles(count))
    drawn *= -1 / rate
    return drawn


def narrow_exponentials(generator: CpuGenerator, count: int, rate: float) -> Array:
    """The same, rounded to float32: NumPy's logarithm is faster, and its last bits matter only
    next to the middle between two numbers of float32."""
    found = np.empty(count, _FLOAT32)
    uniform = generator.doubles(count)
    np.negative(uniform, out=uniform)
    size = min(count, _CHUNK)
    numbers, bits = np.empty(size), np.empty(size, np.uint64)
    for start in range(0, count, _CHUNK):
        part = uniform[start : start + _CHUNK]
        drawn, places = numbers[: part.size], bits[: part.size]
        np.log1p(part, out=drawn)
        drawn *= -1 / rate
        np.bitwise_and(drawn.view(np.uint64), np.uint64(_BELOW_FLOAT32), out=places)
        places -= np.uint64((_BELOW_FLOAT32 + 1) // 2 - _DOUBTFUL)
        doubtful = (places < 2 * _DOUBTFUL) | (drawn < _NORMAL_FLOAT32)
        if doubtful.any():
            drawn[doubtful] = by_libm(math.log1p, part[doubtful]) * (-1 / rate)
        np.copyto(found[start : start + part.size], drawn, casting="same_kind")
    return found


def exponential_(array: Array, rate: float, generator: CpuGenerator) -> Array:
    if array.dtype == _FLOAT64 and filled(array, generator, "exponential", -1 / rate):
        return array
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


def largest(rows: Array, count: int) -> Array:
    """Places of the largest numbers of each row, the largest first, equal ones in their order."""
    falling = -rows
    if rows.shape[1] < _LONG or count > rows.shape[1] // 8:
        return np.argsort(falling, 1, kind="stable")[:, :count]
    places = np.empty((len(rows), count), np.int64)
    for row, numbers in enumerate(falling):
        # A bound for about twice as many as are needed, estimated from the sample.
        rank = 2 * count // _SAMPLED + _SAMPLED
        bound = np.partition(numbers[::_SAMPLED], rank)[rank]
        # What cannot be compared counts as small.
        found = np.flatnonzero(~(numbers > bound))
        if found.size < count:
            found = np.arange(numbers.size)
        places[row] = found[np.argsort(numbers[found], kind="stable")[:count]]
    return places


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
            upper = upper.astype(_FLOAT64, copy=False)
            if not generator.fill("inverted", drawn[row], upper):
                drawn[row] = np.searchsorted(upper, generator.doubles(count))
    else:
        times = exponential_(np.empty(rows.shape, weights.dtype), 1.0, generator)
        speeds = rows / times.astype(rows.dtype, copy=False)
        speeds = speeds.astype(weights.dtype, copy=False).astype(rows.dtype, copy=False)
        drawn = np.argmax(speeds, 1) if count == 1 else largest(speeds, count)
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
