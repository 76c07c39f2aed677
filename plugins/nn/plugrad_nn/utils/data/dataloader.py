"""DataLoader: batches of a data set, in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import plugrad
from plugrad_nn.utils.data.collate import default_collate
from plugrad_nn.utils.data.dataset import Subset
from plugrad_nn.utils.data.pin_memory import can_pin, pin_memory
from plugrad_nn.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    drawn_seed,
)


class DataLoader:
    """Iterates over a data set in batches; every `for` loop is a new epoch.

    Args:
        dataset: anything with `__getitem__` and `__len__`, or any iterable of samples.
        batch_size: samples per batch; None gives the samples one by one, uncollated.
        shuffle: a new random order each epoch.
        sampler: indices in an order of your own (instead of `shuffle`).
        batch_sampler: lists of indices (instead of all of the other options about order and size).
        num_workers: 0, the only choice here; it stands where PyTorch has it.
        collate_fn: makes a batch of a list of samples; `default_collate` by default.
        pin_memory: puts the tensors of batches into page-locked memory, from which copies to a
            device can overlap with work; without such a device there is a warning instead.
        drop_last: leave out a last batch that is not full.
        generator: draws the random order.

    >>> import plugrad
    >>> from plugrad_nn.utils.data import DataLoader, TensorDataset
    >>> data = TensorDataset(plugrad.arange(5))
    >>> [batch.tolist() for (batch,) in DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[list[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        *,
        drop_last: bool = False,
        generator: plugrad.Generator | None = None,
    ) -> None:
        if num_workers != 0:
            raise ValueError(
                "num_workers option should be 0: this DataLoader reads in the caller's process; "
                f"got num_workers={num_workers}"
            )
        self._has_index = hasattr(dataset, "__getitem__")
        if not self._has_index and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError(
                "DataLoader with an iterable dataset: expected unspecified shuffle, sampler and "
                "batch_sampler options"
            )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (
            batch_size != 1 or shuffle or sampler is not None or drop_last
        ):
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                "and drop_last"
            )
        if batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None and self._has_index:
            sampler = (
                RandomSampler(dataset, generator=generator)
                if shuffle
                else SequentialSampler(dataset)
            )
        if batch_sampler is None and batch_size is not None:
            # Over an iterable data set the "indices" that are grouped are the samples themselves.
            source = dataset if sampler is None else sampler
            batch_sampler = BatchSampler(source, batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = None if batch_sampler is not None and batch_size is None else batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.collate_fn = default_collate if collate_fn is None else collate_fn
        self.pin_memory = pin_memory
        self.drop_last = drop_last
        self.generator = generator

    def __iter__(self) -> Iterator[Any]:
        # PyTorch draws a seed for its workers, even if there are none.
        drawn_seed(self.generator)
        batches = self._batches()
        return map(pin_memory, batches) if self.pin_memory and can_pin() else batches

    def _batches(self) -> Iterator[Any]:
        if self.batch_sampler is None:
            yield from (
                self.dataset
                if self.sampler is None
                else (self.dataset[index] for index in self.sampler)
            )
        elif not self._has_index:
            for samples in self.batch_sampler:
                yield self.collate_fn(samples)
        else:
            fetch = self._fetcher()
            for indices in self.batch_sampler:
                yield fetch(indices)

    def _fetcher(self) -> Callable[[list[int]], Any]:
        if self.collate_fn is default_collate:
            batch = _whole_batches(self.dataset)
            if batch is not None:
                return batch
        return lambda indices: self.collate_fn([self.dataset[index] for index in indices])

    def __len__(self) -> int:
        counted = self.sampler if self.batch_sampler is None else self.batch_sampler
        return len(self.dataset if counted is None else counted)  # type: ignore[arg-type]  # raises if unsized


def _whole_batches(dataset: Any) -> Callable[[list[int]], Any] | None:
    """The data set's own way to fetch a collated batch, looked for through subsets."""
    if isinstance(dataset, Subset):
        below, indices = _whole_batches(dataset.dataset), dataset.indices
        if below is None:
            return None
        return lambda positions: below([indices[position] for position in positions])
    own: Callable[[list[int]], Any] | None = getattr(dataset, "batch", None)
    return own
