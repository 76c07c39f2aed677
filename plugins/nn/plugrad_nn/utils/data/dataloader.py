"""DataLoader: batches of a data set, read by the caller's process or by workers."""

from __future__ import annotations

import importlib
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import plugrad
from plugrad_nn.utils.data._utils.collate import default_collate, default_convert
from plugrad_nn.utils.data._utils.iteration import (
    _BaseDataLoaderIter,
    _DatasetKind,
    _SingleProcessDataLoaderIter,
)
from plugrad_nn.utils.data._utils.worker_info import get_worker_info
from plugrad_nn.utils.data.datapipes.datapipe import IterDataPipe
from plugrad_nn.utils.data.dataset import Dataset, IterableDataset
from plugrad_nn.utils.data.graph_settings import apply_shuffle_settings
from plugrad_nn.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
)

if TYPE_CHECKING:
    from plugrad_nn.utils.data._utils.multiprocess import _MultiProcessingDataLoaderIter

__all__ = [
    "DataLoader",
    "_BaseDataLoaderIter",
    "_DatasetKind",
    "_InfiniteConstantSampler",
    "_MultiProcessingDataLoaderIter",
    "_SingleProcessDataLoaderIter",
    "default_collate",
    "default_convert",
    "get_worker_info",
]

T_co = TypeVar("T_co", covariant=True)

# Arguments of the samplers, which cannot be set afterwards.
_FIXED: Final = frozenset(
    ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
)


class _InfiniteConstantSampler(Sampler[None]):
    """None without end: the indices for an iterable data set."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """Iterates over a data set in batches; every `for` loop is a new epoch.

    Args:
        dataset: anything with `__getitem__` and `__len__`, or an `IterableDataset`.
        batch_size: samples per batch; None gives the samples one by one, uncollated.
        shuffle: a new random order each epoch; for an `IterDataPipe`, whether its shufflers are
            active.
        sampler: indices in a custom order (instead of `shuffle`).
        batch_sampler: lists of indices (instead of all other options for order and size).
        num_workers: how many processes read ahead; with 0 the caller's process reads. Workers pass
            large arrays in shared memory, and have default device ``"cpu"``: see docs/data.md.
        collate_fn: makes a batch from a list of samples; `default_collate` by default.
        pin_memory: puts the tensors of batches into page-locked memory, from which copies to a
            device can overlap with work; without such a device there is a warning instead.
        drop_last: skip the last batch if it is not full.
        timeout: how many seconds to wait for a batch; 0 for no limit.
        worker_init_fn: called in each worker with its number before it reads.
        multiprocessing_context: a start method, such as ``"spawn"``, or a context of
            multiprocessing; by default that of the program.
        generator: draws the random order, and the seed of the workers.
        prefetch_factor: how many batches each worker reads ahead; 2 by default.
        persistent_workers: keep the workers for the next epoch.
        pin_memory_device: has no effect.
        in_order: return batches in the order of the sampler; otherwise as soon as they are ready.

    Raises:
        ValueError: options exclude each other or are invalid; the message names them.
        TypeError: `multiprocessing_context` is not a context. Iterating raises a worker's exception
            as one of the same class, with the worker's traceback in its message, and RuntimeError
            if a worker died or took too long.

    >>> import plugrad
    >>> from plugrad.utils.data import DataLoader, TensorDataset
    >>> data = TensorDataset(plugrad.arange(5))
    >>> [batch.tolist() for (batch,) in DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    dataset: Any
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Any
    pin_memory_device: str
    prefetch_factor: int | None
    _iterator: _BaseDataLoaderIter | None
    __initialized = False

    def __init__(
        self,
        dataset: Dataset[T_co] | Sequence[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: plugrad.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self.num_workers = num_workers
        self.prefetch_factor = _checked_prefetch(num_workers, prefetch_factor)
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if isinstance(dataset, IterDataPipe):
            dataset = apply_shuffle_settings(dataset, shuffle)
            shuffle = None
        self.dataset = dataset
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        is_iterable = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if is_iterable else _DatasetKind.Map
        if is_iterable:
            _check_iterable(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                    "and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None:
            sampler = _default_sampler(dataset, shuffle, generator)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._IterableDataset_len_called: int | None = None
        self._iterator = None
        self.__initialized = True
        self.check_worker_number_rationality()

    def __setattr__(self, attr: str, val: Any) -> None:
        if self.__initialized and attr in _FIXED:
            raise ValueError(
                f"{attr} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(attr, val)

    @property
    def multiprocessing_context(self) -> Any:
        """The context of multiprocessing that starts the workers; None for the program's."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, multiprocessing_context: Any) -> None:
        if multiprocessing_context is not None:
            # Programs without worker processes do without it.
            import multiprocessing.context

            if self.num_workers <= 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading "
                    f"(num_workers > 0), but got num_workers={self.num_workers}"
                )
            if isinstance(multiprocessing_context, str):
                valid = multiprocessing.get_all_start_methods()
                if multiprocessing_context not in valid:
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start method in "
                        f"{valid!r}, but got multiprocessing_context={multiprocessing_context!r}"
                    )
                multiprocessing_context = multiprocessing.get_context(multiprocessing_context)
            if not isinstance(multiprocessing_context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string "
                    "specifying the start method, but got "
                    f"multiprocessing_context={multiprocessing_context}"
                )
        self.__multiprocessing_context = multiprocessing_context

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        iterator: _BaseDataLoaderIter = _multiprocessing_iterator()(self)
        return iterator

    def __iter__(self) -> _BaseDataLoaderIter:
        if not self.persistent_workers or self.num_workers == 0:
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        if self.drop_last:
            return length // self.batch_size
        return math.ceil(length / self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn if there are more workers than processors that this process may use."""
        if not self.num_workers:
            return
        heeds_affinity = hasattr(os, "sched_getaffinity")
        count = len(os.sched_getaffinity(0)) if heeds_affinity else os.cpu_count()
        if count is not None and self.num_workers <= count:
            return
        if count is None:
            known = (
                "DataLoader is not able to compute a suggested max number of worker in current "
                "system."
            )
        else:
            known = (
                f"Our suggested max number of worker in current system is {count}"
                f"{'' if heeds_affinity else ' (`cpuset` is not taken into account)'}, which is "
                "smaller than what this DataLoader is going to create."
            )
        warnings.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. {known} "
            "Please be aware that excessive worker creation might get DataLoader running slow or "
            "even freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
            stacklevel=2,
        )


def _multiprocessing_iterator() -> Any:
    """The class of iterators that have workers; it is loaded when there are any."""
    module = importlib.import_module("plugrad_nn.utils.data._utils.multiprocess")
    return module._MultiProcessingDataLoaderIter


def __getattr__(name: str) -> Any:
    if name == "_MultiProcessingDataLoaderIter":
        return _multiprocessing_iterator()
    raise AttributeError(f"module 'plugrad.utils.data.dataloader' has no attribute {name!r}")


def _checked_prefetch(num_workers: int, prefetch_factor: int | None) -> int | None:
    """The number of batches that each worker reads ahead, which is None without workers."""
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if num_workers == 0:
        if prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing."
                "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to "
                "None."
            )
        return None
    if prefetch_factor is None:
        return 2
    if prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    return prefetch_factor


def _default_sampler(dataset: Any, shuffle: bool | None, generator: Any) -> Iterable[Any]:
    if isinstance(dataset, IterableDataset):
        return _InfiniteConstantSampler()
    if shuffle:
        return RandomSampler(dataset, generator=generator)
    return SequentialSampler(dataset)


def _check_iterable(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """An iterable data set has the order that it has."""
    given = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                f"{name}={value}"
            )
