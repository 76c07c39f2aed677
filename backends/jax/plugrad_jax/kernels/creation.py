"""Kernels that make arrays from sizes and numbers, fill them, or draw random ones.

Operators that fill a tensor in place return its new elements. Random numbers come from keys; a
generator provides one per call: see `plugrad_jax.generator`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from plugrad.plugins.spacing import largest_below, spaced, triangle
from plugrad_jax.deferred import raise_later
from plugrad_jax.generator import typed_key
from plugrad_jax.kernels.placement import placed, placed_program
from plugrad_jax.kernels.programs import Array, Kernel, compiled
from plugrad_jax.sharding.mixing import run_again

DTypeLike = Any
Shape = tuple[int, ...]

_WORD: Final = 1 << 64


def in_dtype(value: Any, dtype: DTypeLike) -> Array:
    """A Python number in a dtype that may cut it down; it is not a constant of the program."""
    number = jnp.asarray(value)
    if number.dtype.kind == "c" and np.dtype(dtype).kind not in "cb":
        number = lax.real(number)
    return number != 0 if dtype == jnp.bool_ else number.astype(dtype)


@placed_program(0, 1)
def zeros(size: Shape, dtype: DTypeLike) -> Array:
    return jnp.zeros(size, dtype)


@placed_program(0, 1)
def ones(size: Shape, dtype: DTypeLike) -> Array:
    return jnp.ones(size, dtype)


@placed_program(0, 2)
def full(size: Shape, value: Any, dtype: DTypeLike) -> Array:
    return jnp.broadcast_to(in_dtype(value, dtype), size)


def arange(start: Any, step: Any, count: int, dtype: DTypeLike, device: int) -> Array:
    """Computed in float64, or exactly for integers, and then cast."""
    exact = isinstance(start, int) and isinstance(step, int)
    return _arange(start, step, count, dtype, exact, device)


@placed_program(2, 3, 4)
def _arange(start: Any, step: Any, count: int, dtype: DTypeLike, exact: bool) -> Array:
    places = lax.iota(jnp.int64 if exact else jnp.float64, count)
    return in_dtype(start + step * places, dtype)


def linspace(start: Any, end: Any, steps: int, dtype: DTypeLike, device: int) -> Array:
    return logspace(start, end, steps, None, dtype, device)


def logspace(
    start: Any, end: Any, steps: int, base: float | None, dtype: DTypeLike, device: int
) -> Array:
    """Computed on the host: as integers the numbers would show how a device rounds."""
    numbers = spaced(np, start, end, steps, np.dtype(dtype).kind in "iu")
    return placed((numbers if base is None else np.power(base, numbers)).astype(dtype), device)


@placed_program(0, 1, 2)
def eye(n: int, m: int, dtype: DTypeLike) -> Array:
    return jnp.eye(n, m, dtype=dtype)


def tril_indices(row: int, col: int, offset: int, dtype: DTypeLike, device: int) -> Array:
    return placed(triangle(np, row, col, offset, False).astype(dtype), device)


def triu_indices(row: int, col: int, offset: int, dtype: DTypeLike, device: int) -> Array:
    return placed(triangle(np, row, col, offset, True).astype(dtype), device)


def drawing(*static: int) -> Callable[[Kernel], Kernel]:
    """Compile a function of a key and other arguments, again for each value of those at the
    positions `static`; the compiled function takes a generator in place of the key."""

    def decorate(draw: Kernel) -> Kernel:
        @compiled(*static)
        def drawn(key: Any, *args: Any) -> Any:
            return draw(typed_key(key), *args)

        def kernel(generator: Any, *args: Any) -> Any:
            key = generator.next_key()
            try:
                return drawn(key, *args)
            except ValueError as error:
                # The key is on a single device and already used, so no other call draws from it.
                return run_again(drawn, (key, *args), error)

        return kernel

    return decorate


def _generator_last(drawn: Kernel) -> Kernel:
    def kernel(*args: Any) -> Any:
        return drawn(args[-1], *args[:-1])

    return kernel


def _sized(draw: Kernel) -> Kernel:
    """A kernel that makes a tensor, from a function of a key, a size and a dtype."""
    drawn = drawing(1, 2)(draw)

    def kernel(size: Shape, generator: Any, dtype: DTypeLike, device: int) -> Any:
        return drawn(generator, size, dtype)

    return kernel


def _uniform(key: Any, size: Shape, dtype: DTypeLike) -> Array:
    if jnp.issubdtype(dtype, jnp.complexfloating):
        part = np.finfo(dtype).dtype
        keys = jax.random.split(key)
        return lax.complex(*(jax.random.uniform(each, size, part) for each in keys))
    return jax.random.uniform(key, size, dtype)


def _normal(key: Any, size: Shape, dtype: DTypeLike) -> Array:
    """Complex numbers have half of the variance in each part."""
    return jax.random.normal(key, size, dtype)


@drawing(3, 4)
def _integers(key: Any, low: Any, count: Any, size: Shape, dtype: DTypeLike) -> Array:
    """`low` and `count`, the number of integers, are taken modulo 2**64: 0 means all.

    Takes one of 2**64 equally likely numbers modulo `count`; this favours some integers by less
    than one in 2**64 / count.
    """
    bits = jax.random.bits(key, size, jnp.uint64)
    offset = jnp.where(count == 0, bits, bits % jnp.maximum(count, 1))
    return in_dtype((offset + low).astype(jnp.int64), dtype)


def _integers_between(low: int, high: int, generator: Any, size: Shape, dtype: DTypeLike) -> Array:
    first, count = np.uint64(low % _WORD), np.uint64((high - low) % _WORD)
    return _integers(generator, first, count, size, dtype)


def randint(
    low: int, high: int, size: Shape, generator: Any, dtype: DTypeLike, device: int
) -> Array:
    return _integers_between(low, high, generator, size, dtype)


def random_(array: Array, low: int, high: int, generator: Any) -> Array:
    return _integers_between(low, high, generator, array.shape, array.dtype)


def randperm(n: int, generator: Any, dtype: DTypeLike, device: int) -> Array:
    return _permutation(generator, n, dtype)


@drawing(1, 2)
def _permutation(key: Any, n: int, dtype: DTypeLike) -> Array:
    return in_dtype(jax.random.permutation(key, n), dtype)


def _no_probability(detail: Any) -> Exception:
    return RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")


def _drawn(array: Array, probability: Any, generator: Any) -> Array:
    drawn, bad = _bernoulli(generator, array, probability)
    if isinstance(probability, jax.Array):
        raise_later(bad, _no_probability)
    return drawn


@drawing()
def _bernoulli(key: Any, array: Array, probability: Any) -> tuple[Array, Array]:
    drawn = jax.random.uniform(key, array.shape, jnp.float64) < probability
    fine = jnp.all((probability >= 0) & (probability <= 1))
    return drawn.astype(array.dtype), ~fine


def bernoulli(probabilities: Array, generator: Any) -> Array:
    return _drawn(probabilities, probabilities, generator)


def bernoulli_(array: Array, probability: Any, generator: Any) -> Array:
    shape = np.shape(probability)
    if np.broadcast_shapes(array.shape, shape) != array.shape:
        raise RuntimeError(
            f"output with shape {list(array.shape)} doesn't match the broadcast shape of p, "
            f"{list(shape)}"
        )
    return _drawn(array, probability, generator)


def _no_weights(detail: Any) -> Exception:
    return RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")


def _no_distribution(detail: Any) -> Exception:
    return RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def multinomial(weights: Array, count: int, replacement: bool, generator: Any) -> Array:
    drawn, no_weights, no_distribution = _multinomial(generator, weights, count, replacement)
    raise_later(no_weights, _no_weights)
    raise_later(no_distribution, _no_distribution)
    return drawn


@drawing(2, 3)
def _multinomial(
    key: Any, weights: Array, count: int, replacement: bool
) -> tuple[Array, Array, Array]:
    """With replacement by inverting the distribution function; without, by a race of exponential
    clocks that run at the speed of the weights (Efraimidis and Spirakis, 2006)."""
    rows = weights.astype(jnp.float64)
    no_weights = ~jnp.all(jnp.isfinite(rows) & (rows >= 0))
    no_distribution = ~jnp.all(jnp.sum(rows, -1) > 0)
    if replacement:
        upper = jnp.cumsum(rows, -1)
        marks = jax.random.uniform(key, (*rows.shape[:-1], count), jnp.float64) * upper[..., -1:]
        find = jnp.vectorize(
            lambda bounds, mark: jnp.searchsorted(bounds, mark, side="right"),
            signature="(n),(k)->(k)",
        )
        return find(upper, marks).astype(jnp.int64), no_weights, no_distribution
    times = jax.random.exponential(key, rows.shape, jnp.float64)
    finish = jnp.where(rows > 0, times / rows, jnp.inf)
    order = jnp.argsort(finish, -1)[..., :count].astype(jnp.int64)
    return order, no_weights, no_distribution


@compiled()
def fill_(array: Array, value: Any) -> Array:
    return jnp.broadcast_to(in_dtype(value, array.dtype), array.shape)


@compiled()
def zero_(array: Array) -> Array:
    return jnp.zeros_like(array)


@_generator_last
@drawing()
def _uniform_like(key: Any, array: Array, low: Any, high: Any) -> Array:
    drawn = _uniform(key, array.shape, array.dtype)
    first, end = in_dtype(low, array.dtype), in_dtype(high, array.dtype)
    stretched = drawn * in_dtype(high - low, array.dtype) + first
    if array.dtype.kind == "c":
        return stretched
    return jnp.minimum(stretched, largest_below(jnp, end, first))


@_generator_last
@drawing()
def _normal_like(key: Any, array: Array, mean: Any, std: Any) -> Array:
    drawn = _normal(key, array.shape, array.dtype)
    return drawn * in_dtype(std, array.dtype) + in_dtype(mean, array.dtype)


@_generator_last
@drawing()
def _exponential_like(key: Any, array: Array, rate: Any) -> Array:
    drawn = jax.random.exponential(key, array.shape, array.dtype)
    return drawn / in_dtype(rate, array.dtype)


@compiled()
def complex_of_parts(real: Array, imag: Array) -> Array:
    """Assembled part by part: real + 1j * imag would spread infinities and NaNs."""
    return lax.complex(*jnp.broadcast_arrays(real, imag))


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "complex": complex_of_parts,
    "empty": zeros,
    "zeros": zeros,
    "ones": ones,
    "full": full,
    "arange": arange,
    "linspace": linspace,
    "logspace": logspace,
    "eye": eye,
    "tril_indices": tril_indices,
    "triu_indices": triu_indices,
    "rand": _sized(_uniform),
    "randn": _sized(_normal),
    "randint": randint,
    "randperm": randperm,
    "bernoulli": bernoulli,
    "bernoulli.p": _drawn,
    "multinomial": multinomial,
    "fill_": fill_,
    "zero_": zero_,
    "uniform_": _uniform_like,
    "normal_": _normal_like,
    "exponential_": _exponential_like,
    "bernoulli_": bernoulli_,
    "random_": random_,
}
