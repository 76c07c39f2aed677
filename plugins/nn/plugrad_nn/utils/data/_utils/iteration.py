"""One pass over a loader: the common base, and the pass in the caller's process."""

from __future__ import annotations

import warnings
from typing import Any, Self

from plugrad.autograd.profiler import record_function
from plugrad_nn.utils.data._utils.fetch import (
    _BaseDatasetFetcher,
    _IterableDatasetFetcher,
    _MapDatasetFetcher,
)
from plugrad_nn.utils.data._utils.pin_memory import can_pin, pin_memory
from plugrad_nn.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe
from plugrad_nn.utils.data.graph_settings import apply_sharding, seed_pipes
from plugrad_nn.utils.data.sampler import drawn_seed


class _DatasetKind:
    """How a data set is read: by index, or from its start to its end."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> _BaseDatasetFetcher:
        """The fetcher for a data set of this kind."""
        fetcher = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


class _BaseDataLoaderIter:
    """An iterator over the batches of a loader; a subclass writes `_next_data`."""

    def __init__(self, loader: Any) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._pin_memory = _pins(loader)
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._shared_seed = self._drawn_for_pipes(loader)
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = drawn_seed(loader.generator)
        self._persistent_workers = loader.persistent_workers
        self._num_yielded = 0
        self._profile_name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"

    def __iter__(self) -> Self:
        return self

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._shared_seed = self._drawn_for_pipes(loader)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _drawn_for_pipes(self, loader: Any) -> int | None:
        """A seed that all workers have in common, if they read a pipe: they shuffle alike, and each
        takes its share."""
        if not isinstance(self._dataset, IterDataPipe):
            return None
        seed = drawn_seed(loader.generator)
        seed_pipes(self._dataset, seed)
        return seed

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        with record_function(self._profile_name):
            data = self._next_data()
            self._num_yielded += 1
            promised = self._IterableDataset_len_called
            if promised is not None and self._num_yielded > promised:
                self._warn_of_length(promised)
            return data

    def _warn_of_length(self, promised: int) -> None:
        message = (
            f"Length of IterableDataset {self._dataset} was reported to be {promised}"
            f"(when accessing len(dataloader)), but {self._num_yielded} samples have been fetched. "
        )
        if self._num_workers > 0:
            message += (
                "For multiprocessing data-loading, this could be caused by not properly "
                "configuring the IterableDataset replica at each worker. Please see "
                "plugrad.utils.data.IterableDataset for an example."
            )
        warnings.warn(message, stacklevel=3)

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Reads in the caller's process."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if self._num_workers != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires num_workers == 0")
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            apply_sharding(self._dataset, 1, 0)
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )

    def _next_data(self) -> Any:
        data = self._dataset_fetcher.fetch(self._next_index())
        return pin_memory(data) if self._pin_memory else data


def _pins(loader: Any) -> bool:
    """Whether batches are pinned; warns if that is requested but impossible."""
    if not loader.pin_memory:
        return False
    if loader.pin_memory_device:
        warnings.warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the device,"
            f"ignore pin_memory_device='{loader.pin_memory_device}'.",
            stacklevel=4,
        )
    if not can_pin():
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned "
            "memory won't be used.",
            stacklevel=4,
        )
        return False
    return True
