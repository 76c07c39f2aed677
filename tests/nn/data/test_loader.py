"""The loader in one process, its options, and what it makes batches of (closed forms)."""

from __future__ import annotations

import pickle
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    default_collate,
    random_split,
)


def numbers(count: int = 10) -> TensorDataset:
    return TensorDataset(plugrad.arange(float(count)), plugrad.arange(count))


class Squares(Dataset[int]):
    def __getitem__(self, index: int) -> int:
        if index >= 5:
            raise IndexError
        return index * index

    def __len__(self) -> int:
        return 5


def test_tensor_dataset_gives_tuples() -> None:
    data = numbers()
    value, label = data[3]
    assert (value.item(), label.item(), len(data)) == (3.0, 3, 10)


def test_tensor_dataset_sizes_must_match() -> None:
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(plugrad.ones(2), plugrad.ones(3))


def test_dataset_is_iterable_by_index() -> None:
    assert list(Squares()) == [0, 1, 4, 9, 16]


def test_loader_batches_in_order() -> None:
    batches = [labels.tolist() for _, labels in DataLoader(numbers(), batch_size=4)]
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_whole_batches_equal_collated_samples() -> None:
    fast = list(DataLoader(Subset(numbers(), [3, 1, 4, 1, 5]), batch_size=2))
    slow = list(
        DataLoader(
            Subset(numbers(), [3, 1, 4, 1, 5]),
            batch_size=2,
            collate_fn=lambda samples: default_collate(samples),
        )
    )
    assert [[t.tolist() for t in batch] for batch in fast] == [
        [t.tolist() for t in batch] for batch in slow
    ]
    assert isinstance(fast[0], list)


def test_drop_last_leaves_out_a_part_batch() -> None:
    loader = DataLoader(numbers(), batch_size=4, drop_last=True)
    assert len(loader) == 2 == len(list(loader))
    assert len(DataLoader(numbers(), batch_size=4)) == 3


def test_shuffle_is_a_new_permutation_each_epoch() -> None:
    loader = DataLoader(numbers(50), batch_size=50, shuffle=True)
    (_, first), (_, second) = next(iter(loader)), next(iter(loader))
    assert sorted(first.tolist()) == list(range(50))
    assert first.tolist() != second.tolist()


def test_generator_makes_the_order_repeatable() -> None:
    orders = []
    for _ in range(2):
        generator = plugrad.Generator().manual_seed(1)
        loader = DataLoader(numbers(20), 20, shuffle=True, generator=generator)
        orders.append(next(iter(loader))[1].tolist())
    assert orders[0] == orders[1]


def test_sampler_decides_the_order() -> None:
    loader = DataLoader(numbers(), batch_size=2, sampler=[5, 3, 1])
    assert [labels.tolist() for _, labels in loader] == [[5, 3], [1]]


def test_batch_sampler_decides_the_batches() -> None:
    loader = DataLoader(numbers(), batch_sampler=[[1, 2, 3], [9]])
    assert [labels.tolist() for _, labels in loader] == [[1, 2, 3], [9]]


def test_batch_size_none_gives_samples() -> None:
    loader = DataLoader(Squares(), batch_size=None)
    assert list(loader) == [0, 1, 4, 9, 16]
    assert len(loader) == 5


def test_collate_fn_gets_the_list_of_samples() -> None:
    assert list(DataLoader(Squares(), batch_size=3, collate_fn=sum)) == [5, 25]


def test_iterable_data_is_batched() -> None:
    class Stream(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(5))

    assert [batch.tolist() for batch in DataLoader(Stream(), batch_size=2)] == [[0, 1], [2, 3], [4]]
    assert list(DataLoader(Stream(), batch_size=None)) == [0, 1, 2, 3, 4]
    full = [batch.tolist() for batch in DataLoader(Stream(), batch_size=2, drop_last=True)]
    assert full == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size should be a positive integer value, but got batch_size=0"),
        (
            {"shuffle": True, "sampler": [1]},
            "sampler option is mutually exclusive with shuffle",
        ),
        (
            {"batch_sampler": [[1]], "batch_size": 3},
            "batch_sampler option is mutually exclusive with",
        ),
        ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching"),
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified in multiproc"),
        ({"num_workers": 1, "prefetch_factor": -1}, "prefetch_factor option should be non-neg"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"multiprocessing_context": "fork"}, "can only be used with multi-process loading"),
        (
            {"num_workers": 1, "multiprocessing_context": "knife"},
            "should specify a valid start method in .* but got multiprocessing_context='knife'",
        ),
    ],
)
def test_loader_options_that_exclude_each_other(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DataLoader(numbers(), **options)


@pytest.mark.parametrize(
    ("option", "value"), [("shuffle", True), ("sampler", [1]), ("batch_sampler", [[1]])]
)
def test_an_iterable_data_set_has_its_own_order(option: str, value: Any) -> None:
    class Stream(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(())

    with pytest.raises(ValueError, match=f"expected unspecified {option} option, but got {option}"):
        DataLoader(Stream(), **{option: value})


@pytest.mark.parametrize(
    "name",
    ["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"],
)
def test_what_samplers_were_made_of_is_fixed(name: str) -> None:
    loader = DataLoader(numbers())
    with pytest.raises(ValueError, match=f"{name} attribute should not be set after DataLoader is"):
        setattr(loader, name, getattr(loader, name))
    loader.num_workers = 1
    loader.multiprocessing_context = "spawn"
    with pytest.raises(TypeError, match="should be a valid context object or a string"):
        loader.multiprocessing_context = 3
    assert loader.multiprocessing_context.get_start_method() == "spawn"


def test_more_workers_than_processors_warn() -> None:
    with pytest.warns(UserWarning, match="This DataLoader will create 4096 worker processes"):
        DataLoader(numbers(), num_workers=4096)


def test_a_length_that_is_wrong_warns_when_it_is_passed() -> None:
    class Short(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(3))

        def __len__(self) -> int:
            return 2

    loader = DataLoader(Short(), batch_size=None)
    assert len(list(loader)) == 3
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2.*but 3 samples have been fetched"):
        list(loader)
    assert [len(DataLoader(Short(), 3, drop_last=drop)) for drop in (False, True)] == [1, 0]


def test_an_iterator_cannot_be_pickled() -> None:
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(iter(DataLoader(numbers())))


def test_pinning_without_a_device_warns() -> None:
    if plugrad.cuda.is_available():
        pytest.skip("there is a device")
    loader = DataLoader(numbers(4), 2, pin_memory=True)
    with pytest.warns(UserWarning, match="no accelerator is found"):
        assert [labels.tolist() for _, labels in loader] == [[0, 1], [2, 3]]


def test_random_split_by_sizes_is_a_partition() -> None:
    parts = random_split(numbers(), [7, 3])
    assert [len(part) for part in parts] == [7, 3]
    seen = [int(label.item()) for part in parts for _, label in part]
    assert sorted(seen) == list(range(10))


def test_random_split_by_shares() -> None:
    assert [len(part) for part in random_split(numbers(11), [0.55, 0.45])] == [7, 4]


def test_random_split_is_repeatable() -> None:
    orders = []
    for _ in range(2):
        generator = plugrad.Generator().manual_seed(4)
        orders.append(random_split(numbers(), [5, 5], generator=generator)[0].indices)
    assert orders[0] == orders[1]


@pytest.mark.parametrize("lengths", [[3, 3], [0.5, 0.6], [0.5, 0.4]])
def test_random_split_lengths_must_cover_the_data(lengths: list[Any]) -> None:
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        random_split(numbers(), lengths)


def test_samplers() -> None:
    data = numbers(5)
    assert list(SequentialSampler(data)) == [0, 1, 2, 3, 4]
    assert sorted(RandomSampler(data)) == [0, 1, 2, 3, 4]
    assert len(list(RandomSampler(data, num_samples=12))) == 12
    drawn = list(RandomSampler(data, replacement=True, num_samples=40))
    assert len(drawn) == 40
    assert set(drawn) <= set(range(5))
    assert list(BatchSampler([1, 2, 3], 2, False)) == [[1, 2], [3]]
    with pytest.raises(ValueError, match="num_samples should be a positive integer"):
        RandomSampler([])


def test_collate_goes_into_nested_samples() -> None:
    Point = namedtuple("Point", ["x", "name"])
    batch = default_collate(
        [
            {"a": 1, "b": (1.0, "s"), "c": np.float32(2), "p": Point(plugrad.ones(2), "u")},
            {"a": 2, "b": (3.0, "t"), "c": np.float32(3), "p": Point(plugrad.zeros(2), "v")},
        ]
    )
    assert batch["a"].tolist() == [1, 2]
    assert batch["b"][0].dtype == plugrad.float64
    assert batch["b"][1] == ("s", "t")
    assert batch["c"].dtype == plugrad.float32
    assert batch["p"].x.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert batch["p"].name == ("u", "v")


def test_collate_refuses_what_it_does_not_know() -> None:
    with pytest.raises(TypeError, match="must contain tensors, numpy arrays, numbers, dicts"):
        default_collate([object()])
    with pytest.raises(RuntimeError, match="should be of equal size"):
        default_collate([[1, 2], [3]])


def test_orders_are_drawn_on_the_cpu_whatever_the_default_device(second_backend: str) -> None:
    data = TensorDataset(plugrad.arange(6))

    def order() -> list[int]:
        generator = plugrad.Generator().manual_seed(3)
        return [int(x) for (x,) in DataLoader(data, shuffle=True, generator=generator)]

    expected = order()
    with plugrad.device(second_backend):
        assert order() == expected
        first, _ = random_split(data, [3, 3], generator=plugrad.Generator())
    assert len(first) == 3
