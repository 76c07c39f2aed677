"""Sampler and Shuffler: samples in another order."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sized
from typing import Any, Self, TypeVar

from plugrad_nn.utils.data.datapipes._decorator import functional_datapipe
from plugrad_nn.utils.data.datapipes.datapipe import IterDataPipe
from plugrad_nn.utils.data.sampler import Sampler, SequentialSampler, drawn_seed

T_co = TypeVar("T_co", covariant=True)


class SamplerIterDataPipe(IterDataPipe[T_co]):
    """The samples of a source, in the order of a sampler.

    Args:
        datapipe: the source, with a length if the sampler needs it.
        sampler: its class.
        sampler_args: its arguments besides the source.
        sampler_kwargs: its keyword arguments.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper, Sampler
    >>> list(Sampler(IterableWrapper("abc")))
    [0, 1, 2]
    """

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        sampler: type[Sampler[Any]] = SequentialSampler,
        sampler_args: tuple[Any, ...] | None = None,
        sampler_kwargs: dict[str, Any] | None = None,
    ) -> None:
        self.datapipe = datapipe
        self.sampler_args = sampler_args or ()
        self.sampler_kwargs = {**(sampler_kwargs or {}), "data_source": datapipe}
        make: Any = sampler
        self.sampler = make(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.sampler)

    def __len__(self) -> int:
        if not isinstance(self.sampler, Sized):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return len(self.sampler)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe[T_co]):
    """Samples in a random order, as far as a buffer reaches: `pipe.shuffle()`.

    Each epoch has another order, which begins with a seed that plugrad's generator draws.

    Args:
        datapipe: the source.
        buffer_size: from how many samples the next one is drawn.
        unbatch_level: how many levels of batches are taken apart before.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> pipe = IterableWrapper(range(4)).shuffle().set_seed(0)
    >>> sorted(pipe), list(pipe.set_shuffle(False))
    ([0, 1, 2, 3], [0, 1, 2, 3])
    """

    def __init__(
        self, datapipe: IterDataPipe[T_co], *, buffer_size: int = 10000, unbatch_level: int = 0
    ) -> None:
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe: Any = (
            datapipe.unbatch(unbatch_level=unbatch_level) if unbatch_level else datapipe
        )
        self.buffer_size = buffer_size
        self._buffer: list[T_co] = []
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()

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
        self._buffer = []
        if self._enabled:
            self._rng.seed(drawn_seed(None) if self._seed is None else self._seed)
            self._seed = None

    def __iter__(self) -> Iterator[T_co]:
        if not self._enabled:
            yield from self.datapipe
            return
        for sample in self.datapipe:
            if len(self._buffer) < self.buffer_size:
                self._buffer.append(sample)
                continue
            place = self._rng.randint(0, len(self._buffer) - 1)
            drawn, self._buffer[place] = self._buffer[place], sample
            yield drawn
        while self._buffer:
            yield self._buffer.pop(self._rng.randint(0, len(self._buffer) - 1))

    def __len__(self) -> int:
        return len(self.datapipe)
