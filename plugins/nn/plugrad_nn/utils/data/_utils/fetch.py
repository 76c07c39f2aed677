"""Fetchers: turn indices from the sampler into samples, and these into a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import plugrad
from plugrad_nn.utils.data._utils.collate import default_collate
from plugrad_nn.utils.data.dataset import Subset, TensorDataset


class _BaseDatasetFetcher:
    """Reads a data set.

    Attributes:
        dataset: the data set to read.
        auto_collation: whether samples are put together to batches.
        collate_fn: makes a batch of a list of samples, or converts a single one.
        drop_last: whether a batch that is not full is left out.
    """

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        """The batch, or sample, for indices from the sampler."""
        raise NotImplementedError


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Takes as many samples from an iterator as the sampler gave indices.

    `fetch` raises StopIteration when no batch is left.
    """

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        samples = []
        for _ in possibly_batched_index:
            try:
                samples.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not samples or (self.drop_last and len(samples) < len(possibly_batched_index)):
            raise StopIteration
        return self.collate_fn(samples)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Reads the samples at the indices that the sampler gave."""

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        gather = _gatherer(dataset) if auto_collation and collate_fn is default_collate else None
        if gather is not None:
            # It does the same in one step.
            setattr(self, "fetch", gather)  # noqa: B010  # mypy forbids the assignment

    def fetch(self, possibly_batched_index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        own = getattr(self.dataset, "__getitems__", None)
        if own:
            return self.collate_fn(own(possibly_batched_index))
        return self.collate_fn([self.dataset[index] for index in possibly_batched_index])


def _gatherer(dataset: Any) -> Callable[[Sequence[int]], Any] | None:
    """A function that fetches whole batches of tensors with one gather for each tensor, in place of
    a view for each sample. It applies to data sets that are indexed only by number, also inside
    subsets."""
    if type(dataset) is Subset:
        below, indices = _gatherer(dataset.dataset), dataset.indices
        if below is None:
            return None
        return lambda places: below([indices[place] for place in places])
    if type(dataset) is not TensorDataset or any(t.requires_grad for t in dataset.tensors):
        return None
    tensors = dataset.tensors

    def gather(indices: Sequence[int]) -> list[Any]:
        rows = plugrad.tensor(list(indices), dtype=plugrad.int64, device="cpu")
        size = len(tensors[0])
        if int(rows.min()) < 0:
            rows = plugrad.where(rows < 0, rows + size, rows)
        return [tensor.index_select(0, rows.to(tensor.device)) for tensor in tensors]

    return gather
