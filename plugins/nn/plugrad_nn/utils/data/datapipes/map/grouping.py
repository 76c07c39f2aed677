"""Batcher: samples put together."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from plugrad_nn.utils.data.datapipes._decorator import functional_datapipe
from plugrad_nn.utils.data.datapipes.datapipe import DataChunk, MapDataPipe


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe[Any]):
    """Batches of the samples, as lists: `pipe.batch(n)`.

    Args:
        datapipe: the source, with indices from 0 as keys.
        batch_size: samples per batch.
        drop_last: leave out a last batch that is not full.
        wrapper_class: a function that makes a batch from a list.

    >>> from plugrad.utils.data.datapipes.map import SequenceWrapper
    >>> list(SequenceWrapper(range(5)).batch(2))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        datapipe: MapDataPipe[Any],
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Callable[[list[Any]], Any] = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe: Any = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index: int) -> Any:
        start = index * self.batch_size
        total = len(self.datapipe)
        if not 0 <= start < total or (self.drop_last and start + self.batch_size > total):
            raise IndexError(f"Index {index} is out of bound.")
        stop = min(start + self.batch_size, total)
        return self.wrapper_class([self.datapipe[place] for place in range(start, stop)])

    def __len__(self) -> int:
        total = len(self.datapipe)
        return total // self.batch_size if self.drop_last else math.ceil(total / self.batch_size)
