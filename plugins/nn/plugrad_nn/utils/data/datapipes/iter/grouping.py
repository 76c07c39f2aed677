"""Batcher, UnBatcher and Grouper: samples put together, and taken apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from plugrad_nn.utils.data.datapipes._columns import check_function
from plugrad_nn.utils.data.datapipes._decorator import functional_datapipe
from plugrad_nn.utils.data.datapipes.datapipe import DataChunk, IterDataPipe

T_co = TypeVar("T_co", covariant=True)


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe[Any]):
    """Batches of the samples, as lists: `pipe.batch(n)`.

    Args:
        datapipe: the source.
        batch_size: samples per batch.
        drop_last: leave out a last batch that is not full.
        wrapper_class: a function that makes a batch from a list.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(range(5)).batch(2))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Callable[[list[Any]], Any] = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        total = len(self.datapipe)
        return total // self.batch_size if self.drop_last else math.ceil(total / self.batch_size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe[Any]):
    """The samples of batches, which are lists: `pipe.unbatch()`.

    Args:
        datapipe: the source.
        unbatch_level: how many levels are taken apart; -1 for all.

    Raises:
        ValueError: while it is read, `unbatch_level` is less than -1.
        IndexError: while it is read, there are fewer levels.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper([[0, [1]], [2]]).unbatch())
    [0, [1], 2]
    """

    def __init__(self, datapipe: IterDataPipe[Any], unbatch_level: int = 1) -> None:
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self) -> Iterator[Any]:
        if self.unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        for batch in self.datapipe:
            yield from self._apart(batch, self.unbatch_level)

    def _apart(self, batch: Any, levels: int) -> Iterator[Any]:
        is_batch = isinstance(batch, list)
        if levels > 0 and not is_batch:
            raise IndexError(
                f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe"
            )
        if levels == 0 or not is_batch:
            yield batch
            return
        for part in batch:
            yield from self._apart(part, levels - 1 if levels > 0 else levels)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe[Any]):
    """Lists of the samples with one key: `pipe.groupby(group_key_fn)`.

    A group is yielded when it is full; if too many samples wait, the largest group is yielded
    first. At the end the remaining groups follow in the order of their keys' arrival.

    Args:
        datapipe: the source.
        group_key_fn: the key of a sample.
        keep_key: give pairs of the key and the list.
        buffer_size: how many samples may wait; None for any number.
        group_size: when a group is full; None for never.
        guaranteed_group_size: the least size of a group that is yielded early; `group_size` by
            default.
        drop_remaining: leave out a group that would go first and is smaller than that, instead of
            raising an error.

    Raises:
        RuntimeError: while it is read, too many samples wait, and no group is large enough.

    >>> from plugrad.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(["ab", "c", "de"]).groupby(len))
    [['ab', 'de'], ['c']]
    """

    def __init__(
        self,
        datapipe: IterDataPipe[T_co],
        group_key_fn: Callable[[T_co], Any],
        *,
        keep_key: bool = False,
        buffer_size: int | None = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        check_function(group_key_fn)
        self.datapipe = datapipe
        self.group_key_fn = group_key_fn
        self.keep_key = keep_key
        self.max_buffer_size = buffer_size
        self.group_size = group_size
        self.guaranteed_group_size: int | None = None
        if group_size is not None and buffer_size is not None:
            if not 0 < group_size <= buffer_size:
                raise AssertionError("group_size must be > 0 and <= buffer_size")
            self.guaranteed_group_size = group_size
        if guaranteed_group_size is not None:
            if group_size is None or not 0 < guaranteed_group_size <= group_size:
                raise AssertionError(
                    "guaranteed_group_size must be > 0 and <= group_size and group_size must be set"
                )
            self.guaranteed_group_size = guaranteed_group_size
        self.drop_remaining = drop_remaining
        self.wrapper_class = DataChunk
        self._waiting: dict[Any, list[Any]] = {}
        self._count = 0

    def reset(self) -> None:
        """Drop the waiting samples."""
        self._waiting = {}
        self._count = 0

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "_waiting": {}, "_count": 0}

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            self._waiting.setdefault(key, []).append(sample)
            self._count += 1
            if len(self._waiting[key]) == self.group_size:
                yield self._taken(key)
            if self._count == self.max_buffer_size:
                largest = max(self._waiting, key=lambda each: len(self._waiting[each]))
                is_enough = len(self._waiting[largest]) >= (self.guaranteed_group_size or 0)
                if not is_enough and not self.drop_remaining:
                    raise RuntimeError("Failed to group items", str(self._waiting[largest]))
                group = self._taken(largest)
                if is_enough:
                    yield group
        while self._waiting:
            yield self._taken(next(iter(self._waiting)))

    def _taken(self, key: Any) -> Any:
        samples = self._waiting.pop(key)
        self._count -= len(samples)
        group = self.wrapper_class(samples)
        return (key, group) if self.keep_key else group
