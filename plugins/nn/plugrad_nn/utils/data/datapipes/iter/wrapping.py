"""IterableWrapper: an iterable as a pipe."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

from plugrad_nn.utils.data.datapipes.datapipe import IterDataPipe

T = TypeVar("T")


class IterableWrapperIterDataPipe(IterDataPipe[T]):
    """The samples of an iterable.

    Args:
        iterable: of the samples.
        deepcopy: read a copy, so that changes of samples do not come back in the next epoch; there
            is a warning if it cannot be copied.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper("ab"))
    ['a', 'b']
    """

    def __init__(self, iterable: Iterable[T], deepcopy: bool = True) -> None:
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self) -> Iterator[T]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(self.iterable)
            except TypeError:  # it has a generator, a lock or the like
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of in-place "
                    "modification would affect source data.",
                    stacklevel=2,
                )
        yield from source

    def __len__(self) -> int:
        if not isinstance(self.iterable, Sized):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return len(self.iterable)
