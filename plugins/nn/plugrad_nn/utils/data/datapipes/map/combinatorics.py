"""Shuffler: samples by index in a random order, one after the other."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Self, TypeVar

from plugrad_nn.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe
from plugrad_nn.utils.data.sampler import drawn_seed

T_co = TypeVar("T_co", covariant=True)


class ShufflerIterDataPipe(IterDataPipe[T_co]):
    """Samples in a random order: `pipe.shuffle()`; the result is an iterable pipe.

    Each epoch has another order, which begins with a seed that plugrad's generator draws.

    Args:
        datapipe: the source.
        indices: its keys; by default the indices from 0.

    >>> from plugrad.utils.data.datapipes.map import SequenceWrapper
    >>> sorted(SequenceWrapper("abc").shuffle())
    ['a', 'b', 'c']
    """

    def __init__(self, datapipe: MapDataPipe[T_co], *, indices: list[Any] | None = None) -> None:
        self.datapipe: Any = datapipe
        self.indices = list(range(len(self.datapipe))) if indices is None else indices
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()
        self._shuffled_indices: list[Any] = self.indices

    def set_shuffle(self, shuffle: bool = True) -> Self:
        """Whether the order is changed at all; itself."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Self:
        """Set the seed of the next epoch's order. Returns the pipe itself."""
        self._seed = seed
        return self

    def reset(self) -> None:
        """Start a new order."""
        if self._enabled:
            self._rng.seed(drawn_seed(None) if self._seed is None else self._seed)
            self._seed = None
            self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))

    def __iter__(self) -> Iterator[T_co]:
        if not self._enabled:
            for index in self.indices:
                yield self.datapipe[index]
            return
        while self._shuffled_indices:
            yield self.datapipe[self._shuffled_indices.pop()]

    def __len__(self) -> int:
        return len(self.datapipe)


# An iterable pipe, and so not one that the decorator would give to MapDataPipe.
MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
