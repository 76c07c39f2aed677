"""Data sets and samplers beside PyTorch's: the same samples, orders and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plugrad


def as_lists(found: Any) -> Any:
    """Without the classes of the library."""
    if isinstance(found, dict):
        return {key: as_lists(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return type(found)(as_lists(value) for value in found)
    return found.tolist() if hasattr(found, "tolist") else found


def outcome(action: Callable[[], Any]) -> Any:
    """What a call returns, or the class and message of what it raises."""
    try:
        return as_lists(action())
    except Exception as error:
        return type(error), str(error)


def index_data(lib: Any) -> Any:
    class Tens(lib.utils.data.Dataset):  # type: ignore[misc, name-defined]  # of either library
        def __getitem__(self, index: int) -> int:
            return 10 * range(5)[index]

        def __len__(self) -> int:
            return 5

    return Tens()


def stream_data(lib: Any) -> Any:
    class Stream(lib.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[int]:
            return iter(range(3))

        def __len__(self) -> int:
            return 3

    return Stream()


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "no samples": lambda lib, d: d.Dataset()[0],
    "sum": lambda lib, d: list(index_data(lib) + index_data(lib)),
    "sum of streams": lambda lib, d: list(stream_data(lib) + stream_data(lib)),
    "names of sums": lambda lib, d: [
        type(index_data(lib) + index_data(lib)).__name__,
        type(stream_data(lib) + stream_data(lib)).__name__,
    ],
    "length of a chain": lambda lib, d: len(d.ChainDataset([stream_data(lib)] * 2)),
    "chain of others": lambda lib, d: list(d.ChainDataset([index_data(lib)])),
    "concat": lambda lib, d: [d.ConcatDataset([[1], [2, 3]])[i] for i in (0, 2, -1, -3)],
    "concat sizes": lambda lib, d: d.ConcatDataset([[1], [], [2, 3]]).cumulative_sizes,
    "concat, before the start": lambda lib, d: d.ConcatDataset([[1], [2, 3]])[-4],
    "concat, after the end": lambda lib, d: d.ConcatDataset([[1], [2, 3]])[3],
    "concat of none": lambda lib, d: d.ConcatDataset([]),
    "concat of a stream": lambda lib, d: d.ConcatDataset([stream_data(lib)]),
    "stack": lambda lib, d: d.StackDataset([1, 2], "ab")[1],
    "stack by name": lambda lib, d: d.StackDataset(a=[1, 2], b="xy").__getitems__([1, 0]),
    "stack of stacks": lambda lib, d: d.StackDataset(
        d.StackDataset(a=[1, 2]), d.Subset([5, 6, 7], [2, 0])
    ).__getitems__([0, 1]),
    "stack of none": lambda lib, d: d.StackDataset(),
    "stack of both": lambda lib, d: d.StackDataset([1], a=[1]),
    "stack of two lengths": lambda lib, d: d.StackDataset([1], [1, 2]),
    "subset": lambda lib, d: [d.Subset("abcd", [3, 1])[i] for i in (0, 1, -1)],
    "subset of tensors": lambda lib, d: d.Subset(d.TensorDataset(lib.arange(4)), [3, 1])[[1, 0]],
    "tensors": lambda lib, d: d.TensorDataset(lib.arange(4), lib.ones(4, 1))[1:3],
    "tensors of two lengths": lambda lib, d: d.TensorDataset(lib.ones(2), lib.ones(3)),
    "split": lambda lib, d: [list(p.indices) for p in d.random_split(range(7), [3, 4])],
    "split by shares": lambda lib, d: [len(p) for p in d.random_split(range(7), [0.5, 0.3, 0.2])],
    "split by wrong shares": lambda lib, d: d.random_split(range(7), [1.5, -0.5]),
    "split by too small shares": lambda lib, d: d.random_split(range(7), [0.5, 0.4]),
    "split by wrong sizes": lambda lib, d: d.random_split(range(7), [3, 3]),
    "sampler": lambda lib, d: iter(d.Sampler()),
    "empty random": lambda lib, d: d.RandomSampler([]),
    "random of none": lambda lib, d: d.RandomSampler([1], num_samples=0),
    "too many": lambda lib, d: list(d.RandomSampler(range(3), num_samples=8)),
    "weights of two dimensions": lambda lib, d: d.WeightedRandomSampler([[1.0]], 2),
    "batches of none": lambda lib, d: d.BatchSampler([1], 0, False),
    "batches": lambda lib, d: list(d.BatchSampler(range(5), 2, False)),
    "full batches": lambda lib, d: [list(d.BatchSampler(range(5), 2, True)), 2],
    "ranks": lambda lib, d: d.DistributedSampler(range(5), 2, 2),
}


@pytest.mark.parametrize("case", CASES)
def test_as_in_pytorch(case: str, torch: Any) -> None:
    results = []
    for lib in (plugrad, torch):
        lib.manual_seed(5)
        results.append(outcome(lambda lib=lib: CASES[case](lib, lib.utils.data)))  # type: ignore[misc]
    assert results[0] == results[1]


def test_a_split_may_be_empty_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        parts = plugrad.utils.data.random_split(range(3), [0.9, 0.1])
    assert [len(part) for part in parts] == [3, 0]


def test_a_subset_with_its_own_getitem_needs_getitems() -> None:
    class Half(plugrad.utils.data.Subset[int]):
        def __getitem__(self, idx: Any) -> int:
            return 2

    with pytest.raises(NotImplementedError, match="Half overrides __getitem__ but not"):
        Half([1], [0])


def test_a_loader_reads_several_samples_at_once_where_the_data_set_can() -> None:
    class Blocks(plugrad.utils.data.Dataset[int]):
        def __getitems__(self, indices: list[int]) -> list[int]:
            return [index * 100 for index in indices]

        def __len__(self) -> int:
            return 3

    for data in (Blocks(), plugrad.utils.data.Subset(Blocks(), [0, 1, 2])):
        found = [batch.tolist() for batch in plugrad.utils.data.DataLoader(data, 2)]
        assert found == [[0, 100], [200]]


def test_an_attribute_named_batch_is_the_users() -> None:
    class Graphs(plugrad.utils.data.Dataset[int]):
        batch = "of the user"

        def __getitem__(self, index: int) -> int:
            return index

        def __len__(self) -> int:
            return 2

    assert [b.tolist() for b in plugrad.utils.data.DataLoader(Graphs(), 2)] == [[0, 1]]


def test_without_a_number_of_processes_there_is_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plugrad_nn.utils.data.distributed.distributed_package", lambda: None)
    for given_ in ({}, {"num_replicas": 2}, {"rank": 0}):
        with pytest.raises(RuntimeError, match="Requires distributed package to be available"):
            plugrad.utils.data.DistributedSampler(range(3), **given_)


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(0, 12),
    replicas=st.integers(1, 5),
    shuffle=st.booleans(),
    drop_last=st.booleans(),
    epoch=st.integers(0, 3),
)
def test_shares_are_those_of_pytorch(
    torch_oracle: Any, size: int, replicas: int, shuffle: bool, drop_last: bool, epoch: int
) -> None:
    if not size and not drop_last:
        return  # PyTorch divides by zero
    orders = []
    for lib in (plugrad, torch_oracle):
        found = []
        for rank in range(replicas):
            sampler = lib.utils.data.DistributedSampler(
                range(size), replicas, rank, shuffle=shuffle, seed=3, drop_last=drop_last
            )
            sampler.set_epoch(epoch)
            found.append((len(sampler), list(sampler)))
        orders.append(found)
    assert orders[0] == orders[1]
