"""SequenceWrapper: a sequence or a mapping as a pipe."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from plugrad_nn.utils.data.datapipes.datapipe import MapDataPipe

T = TypeVar("T")


class SequenceWrapperMapDataPipe(MapDataPipe[T]):
    """The entries of a sequence, or of a mapping.

    Args:
        sequence: of the samples.
        deepcopy: keep a copy; there is a warning if it cannot be copied.

    >>> from plugrad.utils.data.datapipes.map import SequenceWrapper
    >>> SequenceWrapper({"a": 1})["a"]
    1
    """

    def __init__(self, sequence: Sequence[T] | Mapping[Any, T], deepcopy: bool = True) -> None:
        self.sequence: Any = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:  # it has a generator, a lock or the like
                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of in-place "
                    "modification would affect source data",
                    stacklevel=2,
                )

    def __getitem__(self, index: Any) -> T:
        sample: T = self.sequence[index]
        return sample

    def __len__(self) -> int:
        return len(self.sequence)
