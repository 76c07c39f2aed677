"""Concater, Zipper and Multiplexer: each combines several pipes into one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from plugrad_nn.utils.data.datapipes._decorator import functional_datapipe
from plugrad_nn.utils.data.datapipes.datapipe import IterDataPipe


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe[Any]):
    """Pipes one after the other: `pipe.concat(other)`.

    Args:
        datapipes: the sources.

    Raises:
        ValueError: there is none.
        TypeError: one is not an IterDataPipe.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper("ab").concat(IterableWrapper("c")))
    ['a', 'b', 'c']
    """

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(_lengths(self.datapipes))


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe[tuple[Any, ...]]):
    """Tuples of one sample of each pipe, until the first one ends: `pipe.zip(other)`.

    Args:
        datapipes: the sources.

    Raises:
        TypeError: one is not an IterDataPipe.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper("ab").zip(IterableWrapper(range(9))))
    [('a', 0), ('b', 1)]
    """

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(_lengths(self.datapipes))


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe[Any]):
    """One sample of each pipe in turn, until the first one ends: `pipe.mux(other)`.

    Args:
        datapipes: the sources.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper("ab").mux(IterableWrapper(range(9))))
    ['a', 0, 'b', 1]
    """

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for samples in zip(*self.datapipes, strict=False):
            yield from samples

    def __len__(self) -> int:
        return min(_lengths(self.datapipes)) * len(self.datapipes)


def _lengths(pipes: Any) -> list[int]:
    return [len(pipe) for pipe in pipes]
