"""The random generator of a GPU: numbered draws of Philox, with PyTorch's interface."""

from __future__ import annotations

import math
import secrets
from typing import Any, Final

import numpy as np

import plugrad
from plugrad_cuda.devices import device_of_index
from plugrad_cuda.fused import CuPyRuntime, Runtime
from plugrad_cuda.fused.random import random_words

_WORD: Final = 1 << 64
_STATE_WORDS: Final = 2
_FLOAT32: Final = np.dtype(np.float32)


class CudaGenerator:
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
        self._seed = 0
        self.rng = Draws(self, CuPyRuntime() if run is None else run)
        self.manual_seed(secrets.randbits(63))

    def manual_seed(self, seed: int) -> CudaGenerator:
        """Start again from a seed in [-2**63, 2**64); returns the generator.

        Raises:
            RuntimeError: a seed outside; a graph is being captured.
        """
        number = int(seed)
        if not -(_WORD // 2) <= number < _WORD:
            raise RuntimeError(
                "Overflow when unpacking long long: expected a seed in "
                f"[-0x8000_0000_0000_0000, 0xffff_ffff_ffff_ffff], got {seed}"
            )
        self._restart(number % _WORD, 0)
        return self

    def _restart(self, seed: int, draws: int) -> None:
        if self.later is not None:
            raise RuntimeError("a generator cannot be seeded while a graph is being captured")
        self._seed, self.draws = seed, draws

    def seed(self) -> int:
        """Start again from a seed that the operating system picks; returns it."""
        self.manual_seed(secrets.randbits(63))
        return self._seed

    def initial_seed(self) -> int:
        """The seed the stream started from."""
        return self._seed

    def get_state(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """The position in the stream as bytes: the seed and the number of draws."""
        return np.array([self._seed, self.draws], np.uint64).view(np.uint8)

    def set_state(self, state: Any) -> None:
        """Go to a position that `get_state` gave; RuntimeError for anything else."""
        data = np.ascontiguousarray(state)
        if data.dtype != np.uint8 or data.size != _STATE_WORDS * 8:
            raise RuntimeError(
                f"set_state(): expected the {_STATE_WORDS * 8} bytes (uint8) that get_state() "
                f"returns, got {data.size} elements of {data.dtype}"
            )
        seed, draws = (int(word) for word in data.reshape(-1).view(np.uint64))
        self._restart(seed, draws)


class Draws:
    """What kernels call: the methods that NumPy's and CuPy's generators have.

    Sizes are shapes, or lengths. The bits are one launch, what is made of them another few.
    """

    def __init__(self, generator: CudaGenerator, run: Runtime) -> None:
        self._generator = generator
        self._run = run

    def words(self, count: int) -> Any:
        """`count` words of 32 bits."""
        source = self._generator
        found = random_words(self._run, count, source._seed, source.draws, source.later)
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

    def standard_exponential(self, size: Any) -> Any:
        """Exponential of rate 1, float64."""
        return -self._run.xp.log1p(-self.random(size))


def default_generator(index: int) -> Any:
    """The generator that a GPU's random operators draw from, unless they are given one."""
    with device_of_index(index):
        return plugrad.random.default_generator()


def _shape(size: Any) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else tuple(size)
