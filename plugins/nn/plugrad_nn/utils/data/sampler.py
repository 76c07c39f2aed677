"""Samplers: the order in which a loader reads a data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any, Generic, TypeVar

import plugrad

T = TypeVar("T", covariant=True)


def home_of(generator: plugrad.Generator | None) -> Any:
    """The device of a generator's numbers. Orders are drawn on the CPU by default, whatever the
    default device, since the host reads them."""
    return getattr(generator, "device", "cpu")


class Sampler(Generic[T]):
    """Yields indices (or lists of them, for a batch sampler)."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ..."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """All indices in random order, or `num_samples` draws with `replacement`."""

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: plugrad.Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.data_source = data_source
        self.replacement = replacement
        self.num_samples = len(data_source) if num_samples is None else num_samples
        self.generator = generator
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
                if num_samples is not None
                else "num_samples should be a positive integer value, but got num_samples=0"
            )

    def __iter__(self) -> Iterator[int]:
        size = len(self.data_source)
        place = home_of(self.generator)
        if self.replacement:
            drawn = plugrad.randint(
                0, size, (self.num_samples,), generator=self.generator, device=place
            )
            yield from drawn.tolist()
            return
        left = self.num_samples
        while left > 0:
            order = plugrad.randperm(size, generator=self.generator, device=place).tolist()
            yield from order[:left]
            left -= size

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Groups the indices of another sampler into lists of `batch_size`."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        size = len(self.sampler)  # type: ignore[arg-type]  # only sized samplers have a length
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)
