"""Data sets with an index: Dataset, TensorDataset, Subset and random_split."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import plugrad
from plugrad import Tensor
from plugrad.plugins.arguments import explains
from plugrad_nn.utils.data.sampler import home_of

T = TypeVar("T")


class Dataset(Generic[T]):
    """Samples by index: a subclass writes `__getitem__` and, for shuffling, `__len__`.

    A subclass that can fetch a collated batch at once, faster than sample by sample, also writes
    `batch(indices)`, which DataLoader uses when it collates in the default way.
    """

    def __getitem__(self, index: int) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __iter__(self) -> Iterator[T]:
        index = 0
        while True:
            try:
                sample = self[index]
            except IndexError:
                return
            yield sample
            index += 1


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors with the same first dimension; sample i is the tuple of their i-th entries."""

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def batch(self, indices: Sequence[int]) -> list[Tensor]:
        """The samples at `indices`, collated: one gather per tensor."""
        rows = plugrad.tensor(list(indices), dtype=plugrad.int64)
        return [tensor.index_select(0, rows.to(tensor.device)) for tensor in self.tensors]

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class Subset(Dataset[T]):
    """The samples of `dataset` at the given indices."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: int) -> T:
        sample: T = self.dataset[self.indices[index]]
        return sample

    def __len__(self) -> int:
        return len(self.indices)


@explains
def random_split(
    dataset: Sized,
    lengths: Sequence[int | float],
    generator: plugrad.Generator | None = None,
) -> list[Subset[Any]]:
    """Splits a data set at random into subsets of the given sizes, or shares that sum to one.

    Raises:
        ValueError: the lengths sum neither to the size of the data set nor to one.
    """
    total = len(dataset)
    sizes = _sizes_of_shares(lengths, total) if sum(lengths) <= 1 else list(lengths)
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
    if not math.isclose(sum(shares), 1.0):
        return [int(share) for share in shares]
    sizes = [math.floor(total * share) for share in shares]
    # What rounding down left over goes to the first subsets, one each.
    for position in range(total - sum(sizes)):
        sizes[position % len(sizes)] += 1
    return sizes
