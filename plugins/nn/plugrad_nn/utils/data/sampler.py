"""Samplers: the order in which a loader reads a data set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import plugrad

T = TypeVar("T", covariant=True)

# How many indices are drawn at a time, as by PyTorch's sampler.
_AT_ONCE = 32


def home_of(generator: plugrad.Generator | None) -> Any:
    """The device of a generator's numbers. Orders are drawn on the CPU by default, whatever the
    default device, since the host reads them."""
    return getattr(generator, "device", "cpu")


def drawn_seed(generator: plugrad.Generator | None) -> int:
    """A seed for other generators, drawn by this one, or by the CPU's."""
    drawn = plugrad.empty((), dtype=plugrad.int64, device=home_of(generator))
    seed: Any = drawn.random_(generator=generator).item()
    return int(seed)


class Sampler(Generic[T]):
    """Yields indices (or lists of them, for a batch sampler).

    >>> from plugrad.utils.data import DataLoader, Sampler
    >>> class Even(Sampler):
    ...     def __iter__(self):
    ...         return iter([0, 2])
    >>> list(DataLoader([5, 6, 7], sampler=Even(), batch_size=2))
    [tensor([5, 7])]
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ...

    Args:
        data_source: the data set to index.

    >>> from plugrad.utils.data import SequentialSampler
    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """All indices in random order, or `num_samples` draws with `replacement`.

    Args:
        data_source: the data set to index.
        replacement: whether an index can be drawn again.
        num_samples: how many; by default as many as there are.
        generator: of the random numbers.

    >>> from plugrad.utils.data import RandomSampler
    >>> sorted(RandomSampler("abc"))
    [0, 1, 2]
    >>> len(list(RandomSampler("abc", replacement=True, num_samples=5)))
    5
    """

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
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                "num_samples should be a positive integer value, but got "
                f"num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many indices an epoch has: by default those that there are at the time.

        >>> from plugrad.utils.data import RandomSampler
        >>> RandomSampler(range(5)).num_samples
        5
        """
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = plugrad.Generator().manual_seed(drawn_seed(None))
        place = home_of(generator)
        if self.replacement:
            for start in range(0, self.num_samples, _AT_ONCE):
                count = min(_AT_ONCE, self.num_samples - start)
                drawn = plugrad.randint(0, size, (count,), generator=generator, device=place)
                yield from drawn.tolist()
            return
        # The last order is drawn even if none of it is read.
        for left in range(self.num_samples, -1, -size):
            yield from plugrad.randperm(size, generator=generator, device=place).tolist()[:left]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some indices in random order.

    Args:
        indices: those to draw.
        generator: of the random numbers.

    >>> from plugrad.utils.data import SubsetRandomSampler
    >>> sorted(SubsetRandomSampler([4, 7]))
    [4, 7]
    """

    def __init__(self, indices: Sequence[int], generator: plugrad.Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        order = plugrad.randperm(
            len(self.indices), generator=self.generator, device=home_of(self.generator)
        )
        for place in order.tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` indices, drawn with probabilities in proportion to `weights`.

    Args:
        weights: (N) numbers, not negative.
        num_samples: how many indices.
        replacement: whether an index can be drawn again.
        generator: of the random numbers.

    >>> from plugrad.utils.data import WeightedRandomSampler
    >>> list(WeightedRandomSampler([0.0, 1.0], num_samples=3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: plugrad.Generator | None = None,
    ) -> None:
        if isinstance(num_samples, bool) or not isinstance(num_samples, int) or num_samples <= 0:
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.weights = plugrad.as_tensor(weights, dtype=plugrad.float64, device=home_of(generator))
        if self.weights.ndim != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = plugrad.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Groups the indices of another sampler into lists of `batch_size`.

    Args:
        sampler: of the indices.
        batch_size: the length of the lists.
        drop_last: leave out a last list that is shorter.

    >>> from plugrad.utils.data import BatchSampler
    >>> list(BatchSampler([3, 1, 2], batch_size=2, drop_last=False))
    [[3, 1], [2]]
    """

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
