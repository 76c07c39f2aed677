"""Kernels that make arrays from sizes and numbers, fill them, or draw random ones."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from plugrad.plugins.spacing import largest_below, spaced, triangle
from plugrad_cuda.kernels.family import INT64, Family, scalar
from plugrad_cuda.kernels.namespace import Array, Kernel, Namespace, Shape

_NATIVE_FLOATS: Final = (np.dtype(np.float32), np.dtype(np.float64))
_HALF_VARIANCE: Final = 0.5**0.5


def _not_probabilities(xp: Any, p: Array) -> Any:
    return (p < 0) | (p > 1) | xp.isnan(p)


def _not_weights(xp: Any, weights: Array) -> Any:
    return (weights < 0) | xp.logical_not(xp.isfinite(weights))


def _affine(xp: Any, drawn: Array, scale: Any, shift: Any) -> Any:
    return drawn * scale + shift


def _finish(xp: Any, times: Array, speeds: Array) -> Any:
    return xp.where(speeds > 0, times / speeds, xp.inf)


class Creation(Family):
    """Constants, ranges and random numbers. A device is an index."""

    def __init__(self, ns: Namespace) -> None:
        super().__init__(ns)
        self.not_probabilities = self.fused(_not_probabilities)
        self.not_weights = self.fused(_not_weights)
        self.affine = self.fused(_affine)
        self.finish = self.fused(_finish)

    def kernels(self) -> dict[str, Kernel]:
        return {
            "complex": self.complex_of_parts,
            "empty": self.empty,
            "zeros": self.zeros,
            "ones": self.ones,
            "full": self.full,
            "arange": self.arange,
            "linspace": self.linspace,
            "logspace": self.logspace,
            "eye": self.eye,
            "tril_indices": self.tril_indices,
            "triu_indices": self.triu_indices,
            "rand": self.rand,
            "randn": self.randn,
            "randint": self.randint,
            "randperm": self.randperm,
            "bernoulli": self.bernoulli,
            "bernoulli.p": self.bernoulli_of_number,
            "multinomial": self.multinomial,
            "fill_": self.fill_,
            "zero_": self.zero_,
            "uniform_": self.uniform_,
            "normal_": self.normal_,
            "exponential_": self.exponential_,
            "bernoulli_": self.bernoulli_,
            "random_": self.random_,
        }

    def empty(self, size: Shape, dtype: Any, device: int) -> Array:
        with self.ns.on(device):
            return self.xp.empty(size, dtype)

    def zeros(self, size: Shape, dtype: Any, device: int) -> Array:
        with self.ns.on(device):
            return self.xp.zeros(size, dtype)

    def ones(self, size: Shape, dtype: Any, device: int) -> Array:
        with self.ns.on(device):
            return self.xp.ones(size, dtype)

    def full(self, size: Shape, value: Any, dtype: Any, device: int) -> Array:
        with self.ns.on(device):
            return self.xp.full(size, scalar(value, dtype), dtype)

    def arange(self, start: Any, step: Any, count: int, dtype: Any, device: int) -> Array:
        """Computed in float64, or exactly for integers, and then cast."""
        with self.ns.on(device):
            exact = isinstance(start, int) and isinstance(step, int)
            places = self.xp.arange(count, dtype=INT64 if exact else np.float64)
            return self.affine(places, step, start).astype(dtype, copy=False)

    def linspace(self, start: Any, end: Any, steps: int, dtype: Any, device: int) -> Array:
        with self.ns.on(device):
            numbers = spaced(self.xp, start, end, steps, dtype.kind in "iu")
            return numbers.astype(dtype, copy=False)

    def logspace(
        self, start: Any, end: Any, steps: int, base: float, dtype: Any, device: int
    ) -> Array:
        with self.ns.on(device):
            powers = self.xp.power(base, spaced(self.xp, start, end, steps, dtype.kind in "iu"))
            return powers.astype(dtype, copy=False)

    def eye(self, n: int, m: int, dtype: Any, device: int) -> Array:
        with self.ns.on(device):
            return self.xp.eye(n, m, dtype=dtype)

    def tril_indices(self, row: int, col: int, offset: int, dtype: Any, device: int) -> Array:
        with self.ns.on(device):
            return self.xp.asarray(triangle(np, row, col, offset, False).astype(dtype, copy=False))

    def triu_indices(self, row: int, col: int, offset: int, dtype: Any, device: int) -> Array:
        with self.ns.on(device):
            return self.xp.asarray(triangle(np, row, col, offset, True).astype(dtype, copy=False))

    def by_parts(self, draw: Kernel, size: Shape, dtype: Any) -> Array:
        part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        result = self.xp.empty(size, dtype)
        result.real = draw(size, dtype=part)
        result.imag = draw(size, dtype=part)
        return result

    def uniform(self, generator: Any, size: Shape, dtype: Any) -> Array:
        if dtype.kind == "c":
            return self.by_parts(generator.rng.random, size, dtype)
        if dtype in _NATIVE_FLOATS:
            return self.xp.asarray(generator.rng.random(size, dtype=dtype))
        # Rounding to 16 bits may give 1, which is outside; the multiples of 2**-digits do not.
        digits = 11 if dtype.kind == "f" else 8
        steps = self.xp.asarray(generator.rng.integers(0, 1 << digits, size))
        return (steps * 0.5**digits).astype(dtype)

    def normal(self, generator: Any, size: Shape, dtype: Any) -> Array:
        if dtype.kind == "c":
            drawn = self.by_parts(generator.rng.standard_normal, size, dtype)
            drawn *= _HALF_VARIANCE
            return drawn
        native = dtype if dtype in _NATIVE_FLOATS else np.dtype(np.float32)
        drawn = self.xp.asarray(generator.rng.standard_normal(size, dtype=native))
        return drawn.astype(dtype, copy=False)

    def rand(self, size: Shape, generator: Any, dtype: Any, device: int) -> Array:
        with self.ns.on(device):
            return self.uniform(generator, size, dtype)

    def randn(self, size: Shape, generator: Any, dtype: Any, device: int) -> Array:
        with self.ns.on(device):
            return self.normal(generator, size, dtype)

    def integers(self, generator: Any, low: int, high: int, size: Shape) -> Array:
        return self.xp.asarray(generator.rng.integers(low, high, size))

    def randint(
        self, low: int, high: int, size: Shape, generator: Any, dtype: Any, device: int
    ) -> Array:
        with self.ns.on(device):
            return self.integers(generator, low, high, size).astype(dtype, copy=False)

    def randperm(self, n: int, generator: Any, dtype: Any, device: int) -> Array:
        """The order of random keys: CuPy's generators have no permutation."""
        with self.ns.on(device):
            if n == 0:
                return self.xp.empty(0, dtype)
            keys = generator.rng.random(n, dtype=np.float64)
            return self.xp.argsort(keys, kind="stable").astype(dtype, copy=False)

    def check_probabilities(self, probabilities: Array) -> None:
        if self.ns.may_wait() and bool(self.xp.any(self.not_probabilities(probabilities))):
            raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")

    def drawn_below(self, generator: Any, size: Shape, probability: Any) -> Array:
        return self.xp.less(generator.rng.random(size, dtype=np.float64), probability)

    def bernoulli(self, probabilities: Array, generator: Any) -> Array:
        self.check_probabilities(probabilities)
        drawn = self.drawn_below(generator, probabilities.shape, probabilities)
        return drawn.astype(probabilities.dtype)

    def bernoulli_of_number(self, a: Array, probability: float, generator: Any) -> Array:
        return self.drawn_below(generator, a.shape, probability).astype(a.dtype)

    def multinomial(self, weights: Array, count: int, replacement: bool, generator: Any) -> Array:
        """With replacement by inverting the distribution function; without, by a race of
        exponential clocks that run at the speed of the weights (Efraimidis and Spirakis, 2006)."""
        rows = weights.astype(np.float64).reshape(-1, weights.shape[-1])
        if self.ns.may_wait() and bool(self.xp.any(self.not_weights(rows))):
            raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
        totals = self.xp.sum(rows, axis=1, keepdims=True)
        if self.ns.may_wait() and bool(self.xp.any(totals <= 0)):
            raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
        if replacement:
            drawn = self.by_inversion(rows / totals, count, generator)
        else:
            times = self.xp.asarray(generator.rng.standard_exponential(rows.shape))
            order = self.xp.argsort(self.finish(times, rows), axis=1, kind="stable")
            drawn = order[:, :count]
        return drawn.reshape((*weights.shape[:-1], count)).astype(INT64)

    def by_inversion(self, shares: Array, count: int, generator: Any) -> Array:
        """All rows in one search: the distribution function of row i is between i and i + 1."""
        rows, classes = shares.shape
        first = self.xp.arange(rows, dtype=np.float64)[:, None]
        upper = self.xp.cumsum(shares, axis=1)
        upper = upper / upper[:, -1:] + first
        marks = self.xp.asarray(generator.rng.random((rows, count), dtype=np.float64)) + first
        # A mark that was rounded up would be in the next row.
        marks = self.xp.minimum(marks, self.xp.nextafter(first + 1, first))
        found = self.xp.searchsorted(upper.reshape(-1), marks.reshape(-1), side="right")
        return found.reshape(rows, count) - self.xp.arange(rows, dtype=INT64)[:, None] * classes

    def fill_(self, array: Array, value: Any) -> Array:
        if self.is_array(value):
            self.xp.copyto(array, value, casting="unsafe")
        else:
            array.fill(scalar(value, array.dtype))
        return array

    def zero_(self, array: Array) -> Array:
        array.fill(0)
        return array

    def write(self, array: Array, values: Array) -> Array:
        self.xp.copyto(array, values, casting="unsafe")
        return array

    def uniform_(self, array: Array, low: float, high: float, generator: Any) -> Array:
        drawn = self.uniform(generator, array.shape, array.dtype)
        stretched = self.affine(drawn, high - low, low)
        if array.dtype.kind != "c":
            last = largest_below(np, scalar(high, array.dtype), scalar(low, array.dtype))
            stretched = self.xp.minimum(stretched, last)
        return self.write(array, stretched)

    def normal_(self, array: Array, mean: float, std: float, generator: Any) -> Array:
        drawn = self.normal(generator, array.shape, array.dtype)
        return self.write(array, self.affine(drawn, std, mean))

    def exponential_(self, array: Array, rate: float, generator: Any) -> Array:
        drawn = self.xp.asarray(generator.rng.standard_exponential(array.shape))
        return self.write(array, drawn / rate)

    def bernoulli_(self, array: Array, probability: Any, generator: Any) -> Array:
        if self.is_array(probability):
            self.check_probabilities(probability)
            if np.broadcast_shapes(array.shape, probability.shape) != array.shape:
                raise RuntimeError(
                    f"output with shape {list(array.shape)} doesn't match the broadcast shape of "
                    f"p, {list(probability.shape)}"
                )
        return self.write(array, self.drawn_below(generator, array.shape, probability))

    def random_(self, array: Array, low: int, high: int, generator: Any) -> Array:
        return self.write(array, self.integers(generator, low, high, array.shape))

    def complex_of_parts(self, real: Any, imag: Any) -> Any:
        """Assembled part by part: real + 1j * imag would spread infinities and NaNs."""
        shape = np.broadcast_shapes(real.shape, imag.shape)
        result = self.xp.empty(shape, np.dtype(f"c{real.dtype.itemsize * 2}"))
        result.real = real
        result.imag = imag
        return result
