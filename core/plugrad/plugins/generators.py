"""The common part of random number generators: seeds, and states that consist of words."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Sequence
from typing import Any, Final, Self

import numpy as np

_WORD: Final = 1 << 64

__all__ = ["SeededGenerator"]


class SeededGenerator:
    """A stream that starts from a seed; its state is the seed and a few words of 64 bits.

    Implements `plugrad.plugins.Generator`, except for the meaning of the words. A backend's
    generator defines that, and gives its kernels a source to draw from:

    >>> from plugrad.plugins.generators import SeededGenerator
    >>> class Counting(SeededGenerator):
    ...     def restart(self, seed):
    ...         self.drawn = 0
    ...     def state_words(self):
    ...         return [self.drawn]
    ...     def set_state_words(self, seed, words):
    ...         (self.drawn,) = words
    >>> generator = Counting(5)
    >>> state = generator.get_state()
    >>> generator.drawn = 7
    >>> generator.set_state(state)
    >>> generator.initial_seed(), generator.drawn
    (5, 0)

    Args:
        seed: by default one that the operating system picks.

    Attributes:
        STATE_WORDS: how many words the state has beside the seed.
        started_from: the seed, in [0, 2**64).
    """

    STATE_WORDS: int = 1

    def __init__(self, seed: int | None = None) -> None:
        self.started_from = 0
        self.manual_seed(secrets.randbits(63) if seed is None else seed)

    def restart(self, seed: int) -> None:
        """Go to the start of the stream of a seed in [0, 2**64)."""
        raise NotImplementedError

    def state_words(self) -> Sequence[int]:
        """The position in the stream, as numbers in [0, 2**64)."""
        raise NotImplementedError

    def set_state_words(self, seed: int, words: Sequence[int]) -> None:
        """Go to a position in the stream of a seed."""
        raise NotImplementedError

    def manual_seed(self, seed: int) -> Self:
        """Start again from a seed in [-2**63, 2**64); returns the generator.

        Raises ValueError for a seed outside, and RuntimeError for one that is not an integer.

        >>> import plugrad
        >>> plugrad.Generator().manual_seed(-1).initial_seed() == 2**64 - 1
        True
        """
        if not hasattr(type(seed), "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        number = int(seed)
        if not -(_WORD // 2) <= number < _WORD:
            raise ValueError(
                "Overflow when unpacking long long: expected a seed in "
                f"[-0x8000_0000_0000_0000, 0xffff_ffff_ffff_ffff], got {seed}"
            )
        self.restart(number % _WORD)
        self.started_from = number % _WORD
        return self

    def seed(self) -> int:
        """Start again from a seed that the operating system picks; returns it."""
        self.manual_seed(secrets.randbits(63))
        return self.started_from

    def initial_seed(self) -> int:
        """The seed the stream started from."""
        return self.started_from

    def get_state(self) -> Any:
        """The position in the stream as bytes: the seed, then the words."""
        return np.array([self.started_from, *self.state_words()], np.uint64).view(np.uint8)

    def set_state(self, state: Any) -> None:
        """Go to a position that `get_state` gave; RuntimeError for anything else."""
        data = np.ascontiguousarray(state)
        wanted = (1 + self.STATE_WORDS) * 8
        if data.dtype != np.uint8 or data.size != wanted:
            raise RuntimeError(
                f"set_state(): expected the {wanted} bytes (uint8) that get_state() "
                f"returns, got {data.size} elements of {data.dtype}"
            )
        seed, *words = (int(word) for word in data.reshape(-1).view(np.uint64))
        self.set_state_words(seed, words)
        self.started_from = seed

    def get_offset(self) -> int:
        """Only generators that count have an offset: RuntimeError."""
        raise RuntimeError("this Generator does not use offset")

    def set_offset(self, offset: int) -> None:
        """Only generators that count have an offset: RuntimeError."""
        raise RuntimeError("this Generator does not use offset")

    def graphsafe_get_state(self) -> Self:
        """Generators do not share their states: NotImplementedError."""
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state: Self) -> None:
        """Generators do not share their states: NotImplementedError."""
        if not isinstance(state, SeededGenerator):
            raise TypeError(f"expected a Generator, but got {type(state).__name__}")
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def clone_state(self) -> Self:
        """An independent generator that continues from this position."""
        made = copy.copy(self)
        made.set_state(self.get_state())
        return made
