"""Data sets: samples by index or one after the other; combining and splitting them."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import plugrad
from plugrad import Tensor
from plugrad.plugins.arguments import explains
from plugrad_nn.utils.data.sampler import home_of

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by index: a subclass defines `__getitem__` and, for most samplers, `__len__`.

    A subclass that can fetch several samples faster than one by one also defines
    `__getitems__(indices)`, which returns a list of them. `a + b` is `ConcatDataset([a, b])`.

    >>> from plugrad.utils.data import Dataset
    >>> class Squares(Dataset):
    ...     def __getitem__(self, index):
    ...         return index * index
    ...     def __len__(self):
    ...         return 4
    >>> len(Squares() + Squares())
    8
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Samples one after the other: a subclass defines `__iter__`.

    Each worker process has a copy. With `get_worker_info()`, `__iter__` finds out in which
    worker it runs, so that each can return a different part of the samples. `a + b` is
    `ChainDataset([a, b])`.

    >>> from plugrad.utils.data import DataLoader, IterableDataset, get_worker_info
    >>> class Count(IterableDataset):
    ...     def __iter__(self):
    ...         info = get_worker_info()
    ...         first, step = (0, 1) if info is None else (info.id, info.num_workers)
    ...         return iter(range(first, 5, step))
    >>> list(DataLoader(Count(), batch_size=3))
    [tensor([0, 1, 2]), tensor([3, 4])]
    """

    def __add__(self, other: Dataset[T_co]) -> ChainDataset:  # type: ignore[override]  # as PyTorch
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors with the same first dimension; sample i is the tuple of their i-th entries.

    Raises AssertionError if the first dimensions differ.

    Args:
        tensors: each of shape (N, ...).

    >>> import plugrad
    >>> from plugrad.utils.data import TensorDataset
    >>> data = TensorDataset(plugrad.arange(3), plugrad.ones(3, 2))
    >>> data[1]
    (tensor(1), tensor([1., 1.]))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """Data sets of one length in parallel: sample i is the tuple, or the dict, of their samples.

    Args:
        args: data sets, for tuples.
        kwargs: data sets by name, for dicts.

    Raises:
        ValueError: both or none are given, or the lengths differ.

    >>> from plugrad.utils.data import StackDataset
    >>> StackDataset(image=[0.5, 0.25], label=[3, 4])[1]
    {'image': 0.25, 'label': 4}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like "
                "input/output, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        columns = self._columns()
        self._length = len(columns[0])
        if any(len(column) != self._length for column in columns):
            raise ValueError("Size mismatch between datasets")

    def _columns(self) -> list[Any]:
        datasets = self.datasets
        return list(datasets.values() if isinstance(datasets, dict) else datasets)

    def _row(self, samples: Iterable[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, samples, strict=True))
        return tuple(samples)

    def __getitem__(self, index: Any) -> Any:
        return self._row(column[index] for column in self._columns())

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        found = [_items(column, indices) for column in self._columns()]
        for items in found:
            if len(items) != len(indices):
                raise ValueError(
                    "Nested dataset's output size mismatch. Expected "
                    f"{len(indices)}, got {len(items)}"
                )
        return [self._row(samples) for samples in zip(*found, strict=True)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Data sets one after the other, by index.

    Raises AssertionError if there is none, or one of them is an `IterableDataset`.

    Args:
        datasets: those with `__len__` and `__getitem__`.

    >>> from plugrad.utils.data import ConcatDataset
    >>> data = ConcatDataset([[1, 2], [3]])
    >>> data[2], data[-3], data.cumulative_sizes
    (3, 1, [2, 3])
    """

    @staticmethod
    def cumsum(sequence: Iterable[Sized]) -> list[int]:
        """The lengths, added up.

        >>> from plugrad.utils.data import ConcatDataset
        >>> ConcatDataset.cumsum([[1, 2], [3, 4, 5]])
        [2, 5]
        """
        return list(itertools.accumulate(len(part) for part in sequence))

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        place = idx + len(self) if idx < 0 else idx
        if place < 0:
            raise ValueError("absolute value of index should not exceed dataset length")
        which = bisect.bisect_right(self.cumulative_sizes, place)
        start = self.cumulative_sizes[which - 1] if which else 0
        sample: T_co = self.datasets[which][place - start]
        return sample

    @property
    def cummulative_sizes(self) -> list[int]:
        """`cumulative_sizes` under an older name of PyTorch."""
        warnings.warn(
            "cummulative_sizes attribute is renamed to cumulative_sizes",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Iterable data sets one after the other.

    Raises AssertionError, when it is read, if one of them is not an `IterableDataset`.

    Args:
        datasets: instances of `IterableDataset`.

    >>> from plugrad.utils.data import ChainDataset, IterableDataset
    >>> class Count(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(2))
    >>> list(ChainDataset([Count(), Count()]))
    [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            yield from self._checked(dataset)

    def __len__(self) -> int:
        return sum(len(self._checked(dataset)) for dataset in self.datasets)

    @staticmethod
    def _checked(dataset: Any) -> Any:
        if not isinstance(dataset, IterableDataset):
            raise AssertionError("ChainDataset only supports IterableDataset")
        return dataset


class Subset(Dataset[T_co]):
    """The samples of `dataset` at the given indices.

    Raises NotImplementedError in a subclass that has its own `__getitem__` and not its own
    `__getitems__`, which a loader reads by.

    Args:
        dataset: the data set of the samples.
        indices: the indices of the samples, in order.

    >>> from plugrad.utils.data import Subset
    >>> list(Subset("abcd", [3, 1]))
    ['d', 'b']
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        cls = type(self)
        if cls.__getitem__ is not Subset.__getitem__ and cls.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{cls.__name__} overrides __getitem__ but not __getitems__. When subclassing "
                "Subset and overriding __getitem__, you must also override __getitems__ to ensure "
                "DataLoader works correctly with your custom logic. A simple implementation:\n\n"
                "def __getitems__(self, indices):\n"
                "    return [self.__getitem__(idx) for idx in indices]"
            )
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> T_co:
        if isinstance(idx, list):
            several: T_co = self.dataset[[self.indices[place] for place in idx]]
            return several
        sample: T_co = self.dataset[self.indices[idx]]
        return sample

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        return _items(self.dataset, [self.indices[place] for place in indices])

    def __len__(self) -> int:
        return len(self.indices)


def _items(dataset: Any, indices: list[Any]) -> list[Any]:
    """Several samples, by the data set's `__getitems__` if it has one."""
    own = getattr(dataset, "__getitems__", None)
    if callable(own):
        items: list[Any] = own(indices)
        return items
    return [dataset[index] for index in indices]


@explains
def random_split(
    dataset: Sized,
    lengths: Sequence[int | float],
    generator: plugrad.Generator | None = None,
) -> list[Subset[Any]]:
    """Splits a data set at random into subsets of the given sizes, or fractions that sum to one.

    Args:
        dataset: anything with a length.
        lengths: sizes, or fractions between 0 and 1.
        generator: draws the random numbers; by default the CPU's.

    Raises:
        ValueError: the lengths sum neither to the size of the data set nor to one, or a fraction
            is not between 0 and 1.

    >>> from plugrad.utils.data import random_split
    >>> [len(part) for part in random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    total = len(dataset)
    is_shares = math.isclose(sum(lengths), 1) and sum(lengths) <= 1
    sizes = _sizes_of_shares(lengths, total) if is_shares else list(lengths)
    if sum(sizes) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = plugrad.randperm(total, generator=generator, device=home_of(generator)).tolist()
    subsets = []
    start = 0
    for size in sizes:
        stop = start + int(size)
        subsets.append(Subset[Any](dataset, order[start:stop]))
        start = stop
    return subsets


def _sizes_of_shares(shares: Sequence[float], total: int) -> list[int]:
    sizes = []
    for position, share in enumerate(shares):
        if not 0 <= share <= 1:
            raise ValueError(f"Fraction at index {position} is not between 0 and 1")
        sizes.append(math.floor(total * share))
    # The remainder of rounding down is distributed to the first subsets, one each.
    for position in range(total - sum(sizes)):
        sizes[position % len(sizes)] += 1
    for position, size in enumerate(sizes):
        if size == 0:
            warnings.warn(
                f"Length of split at index {position} is 0. This might result in an empty dataset.",
                stacklevel=3,
            )
    return sizes
