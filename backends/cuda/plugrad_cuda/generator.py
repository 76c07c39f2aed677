"""The random generator of a GPU: numbered draws of Philox, with PyTorch's interface."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import plugrad
from plugrad.plugins.generators import SeededGenerator
from plugrad_cuda.devices import device_of_index
from plugrad_cuda.fused import CuPyRuntime, Runtime
from plugrad_cuda.fused.random import random_words

_WORD: Final = 1 << 64
_FLOAT32: Final = np.dtype(np.float32)
# How many of CuPy's generators work side by side: each has 64 bytes of state.
_GENERATORS: Final = 1 << 15


class CudaGenerator(SeededGenerator):
    """A stream of random numbers; kernels draw from `rng`, on the current stream of the GPU.

    Its state is the seed and how many draws there were, whatever their sizes.

    Args:
        index: the GPU.
        run: where the kernel runs, by default on the GPU.

    Attributes:
        rng: what the kernels of random operators draw from.
        draws: how often it was drawn since the seed was set.
        later: while a graph is captured, the array in which a replay finds what to add to `draws`.
    """

    def __init__(self, index: int = 0, run: Runtime | None = None) -> None:
        self.index = index
        self.draws = 0
        self.later: Any = None
        self.rng = Draws(self, CuPyRuntime() if run is None else run)
        super().__init__()

    def restart(self, seed: int) -> None:
        self.set_state_words(seed, [0])

    def state_words(self) -> Sequence[int]:
        """The number of draws."""
        return [self.draws]

    def set_state_words(self, seed: int, words: Sequence[int]) -> None:
        if self.later is not None:
            raise RuntimeError("a generator cannot be seeded while a graph is being captured")
        (self.draws,) = words

    def get_offset(self) -> int:
        """The number of draws."""
        return self.draws

    def set_offset(self, offset: int) -> None:
        """Go to a number of draws."""
        self.set_state_words(self.started_from, [offset])


class Draws:
    """The interface for kernels: the methods of NumPy's and CuPy's generators.

    Sizes are shapes, or lengths. The bits take one launch, the numbers made from them a few more.
    """

    def __init__(self, generator: CudaGenerator, run: Runtime) -> None:
        self._generator = generator
        self._run = run

    def words(self, count: int) -> Any:
        """`count` words of 32 bits."""
        source = self._generator
        found = random_words(self._run, count, source.started_from, source.draws, source.later)
        source.draws += 1
        return found

    def random(self, size: Any, dtype: Any = np.float64) -> Any:
        """Uniform in [0, 1), float32 of 24 bits or float64 of 53."""
        shape = _shape(size)
        count = math.prod(shape)
        if np.dtype(dtype) == _FLOAT32:
            numbers = (self.words(count) >> 8).astype(np.float32) * np.float32(2.0**-24)
        else:
            numbers = (self._long_words(count) >> 11).astype(np.float64) * 2.0**-53
        return numbers.reshape(shape)

    def _long_words(self, count: int) -> Any:
        return self.words(2 * count).view(np.uint64)

    def integers(self, low: int, high: int, size: Any) -> Any:
        """int64 in [low, high), by remainders of 64 bits: the bias is below 2**-64 (high - low)."""
        shape = _shape(size)
        span = high - low
        words = self._long_words(math.prod(shape))
        if span < _WORD:
            words = words % np.uint64(span)
        return (words + np.uint64(low % _WORD)).view(np.int64).reshape(shape)

    def standard_normal(self, size: Any, dtype: Any = np.float64) -> Any:
        """Normal, by the transformation of Box and Muller (1958)."""
        xp = self._run.xp
        shape = _shape(size)
        half = (math.prod(shape) + 1) // 2
        drawn = self.random((2, half), dtype)
        one = drawn.dtype.type(1)
        radius = xp.sqrt(drawn.dtype.type(-2) * xp.log(one - drawn[0]))
        angle = drawn.dtype.type(2 * math.pi) * drawn[1]
        pairs = xp.concatenate((radius * xp.cos(angle), radius * xp.sin(angle)))
        return pairs[: math.prod(shape)].reshape(shape)

    def poisson(self, rates: Any) -> Any:
        """int64 of Poisson's distribution, by CuPy's kernels."""
        return self._beside().poisson(rates, size=rates.shape)

    def binomial(self, trials: Any, chances: Any) -> Any:
        """int64 of the binomial distribution, by CuPy's kernels."""
        return self._beside().binomial(trials, chances, size=trials.shape)

    def standard_gamma(self, alpha: Any) -> Any:
        """float64 of the gamma distribution of scale 1, by CuPy's kernels."""
        return self._beside().standard_gamma(alpha, size=alpha.shape)

    def _beside(self) -> Any:
        """A generator of CuPy's for this draw alone: its numbers depend on the seed and on how
        many draws there were."""
        source = self._generator
        if source.later is not None:
            raise RuntimeError(
                "poisson, binomial, gamma and Dirichlet distributions cannot be captured in a CUDA "
                "graph: each replay would draw the same numbers"
            )
        random = self._run.xp.random
        seed = np.random.SeedSequence([source.started_from % _WORD, source.draws])
        source.draws += 1
        return random.Generator(random.Philox4x3210(seed, size=_GENERATORS))

    def standard_exponential(self, size: Any) -> Any:
        """Exponential of rate 1, float64."""
        return -self._run.xp.log1p(-self.random(size))


def default_generator(index: int) -> Any:
    """The generator that a GPU's random operators draw from, unless they are given one."""
    return plugrad.random.default_generator(device_of_index(index))


def _shape(size: Any) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else tuple(size)
