"""Concater and Zipper: each combines several pipes into one."""

from __future__ import annotations

from typing import Any

from plugrad_nn.utils.data.datapipes._decorator import functional_datapipe
from plugrad_nn.utils.data.datapipes.datapipe import MapDataPipe


def _checked(pipes: Any) -> Any:
    if not pipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, MapDataPipe) for pipe in pipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    return pipes


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe[Any]):
    """Pipes one after the other, with indices from 0: `pipe.concat(other)`.

    Args:
        datapipes: the sources, with indices as keys.

    Raises:
        ValueError: there is none.
        TypeError: one is not a MapDataPipe.

    >>> from plugrad.utils.data.datapipes.map import SequenceWrapper
    >>> SequenceWrapper("ab").concat(SequenceWrapper("c"))[2]
    'c'
    """

    def __init__(self, *datapipes: MapDataPipe[Any]) -> None:
        self.datapipes = _checked(datapipes)

    def __getitem__(self, index: int) -> Any:
        offset = 0
        for pipe in self.datapipes:
            if index - offset < len(pipe):
                return pipe[index - offset]
            offset += len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe[tuple[Any, ...]]):
    """Tuples of the samples with one key: `pipe.zip(other)`.

    Args:
        datapipes: the sources.

    Raises:
        ValueError: there is none.
        TypeError: one is not a MapDataPipe.

    >>> from plugrad.utils.data.datapipes.map import SequenceWrapper
    >>> SequenceWrapper("ab").zip(SequenceWrapper(range(9)))[1]
    ('b', 1)
    """

    def __init__(self, *datapipes: MapDataPipe[Any]) -> None:
        self.datapipes = _checked(datapipes)

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        samples = []
        for pipe in self.datapipes:
            try:
                samples.append(pipe[index])
            except IndexError as error:
                raise IndexError(
                    f"Index {index} is out of range for one of the input MapDataPipes {pipe}."
                ) from error
        return tuple(samples)

    def __len__(self) -> int:
        return min(len(pipe) for pipe in self.datapipes)
