"""Loaders with worker processes beside PyTorch's: the same batches, orders and random numbers."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plugrad

WORKERS = (0, 1, 2, 3)


def data_of(lib: Any, size: int = 11) -> Any:
    class Numbered(lib.utils.data.Dataset):  # type: ignore[misc, name-defined]  # of either library
        def __getitem__(self, index: int) -> Any:
            info = lib.utils.data.get_worker_info()
            worker = (-1, -1, -1) if info is None else (info.id, info.num_workers, info.seed)
            drawn = random.random(), np.random.rand(), lib.rand(2)
            return index, worker, drawn

        def __len__(self) -> int:
            return size

    return Numbered()


def stream_of(lib: Any, size: int = 11) -> Any:
    class Stream(lib.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[int]:
            info = lib.utils.data.get_worker_info()
            first, step = (0, 1) if info is None else (info.id, info.num_workers)
            # The first has more than its share: the others end early.
            return iter(range(first, size if first else 2 * size, step))

    return Stream()


def threads_of(lib: Any) -> Any:
    class Threads(lib.utils.data.Dataset):  # type: ignore[misc, name-defined]
        def __getitem__(self, index: int) -> int:
            return int(lib.get_num_threads())

        def __len__(self) -> int:
            return 4

    return Threads()


def as_lists(found: Any) -> Any:
    if isinstance(found, list | tuple):
        return [as_lists(value) for value in found]
    return found.tolist() if hasattr(found, "tolist") else found


def epochs(lib: Any, make: Callable[[Any], Any], count: int = 2) -> Any:
    """All batches of some epochs, and what the caller's generator gives next."""
    lib.manual_seed(7)
    random.seed(7)
    np.random.seed(7)
    loader = make(lib)
    found = [[as_lists(batch) for batch in loader] for _ in range(count)]
    return found, lib.rand(1).tolist(), random.random()


def assert_same(torch: Any, make: Callable[[Any], Any]) -> None:
    assert epochs(plugrad, make) == epochs(torch, make)


def loader(lib: Any, data: Any, *args: Any, **options: Any) -> Any:
    return lib.utils.data.DataLoader(data(lib), *args, **options)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
class TestBesidePyTorch:
    def test_each_worker_computes_on_one_thread(self, torch: Any) -> None:
        for lib in (plugrad, torch):
            before = lib.get_num_threads()
            lib.set_num_threads(2)
            try:
                assert as_lists(list(loader(lib, threads_of, num_workers=2))) == [[1]] * 4
                assert lib.get_num_threads() == 2
            finally:
                lib.set_num_threads(before)

    @pytest.mark.parametrize("workers", WORKERS)
    @pytest.mark.parametrize("shuffle", [False, True])
    def test_batches_orders_and_random_numbers(
        self, torch: Any, workers: int, shuffle: bool
    ) -> None:
        options = {"shuffle": shuffle, "num_workers": workers}
        assert_same(torch, lambda lib: loader(lib, data_of, 3, **options))

    @pytest.mark.parametrize("workers", WORKERS)
    def test_a_generator_draws_the_order_and_the_seeds(self, torch: Any, workers: int) -> None:
        def make(lib: Any) -> Any:
            generator = lib.Generator().manual_seed(4)
            options = {"shuffle": True, "num_workers": workers, "generator": generator}
            return loader(lib, data_of, 2, drop_last=True, **options)

        assert_same(torch, make)

    @pytest.mark.parametrize("workers", WORKERS)
    @pytest.mark.parametrize("size", [None, 1, 2, 4])
    @pytest.mark.parametrize("drop_last", [False, True])
    def test_shares_of_a_stream(
        self, torch: Any, workers: int, size: int | None, drop_last: bool
    ) -> None:
        drop_last = drop_last and size is not None
        options = {"num_workers": workers, "drop_last": drop_last}
        assert_same(torch, lambda lib: loader(lib, stream_of, size, **options))

    @pytest.mark.parametrize("workers", [1, 2, 3])
    @pytest.mark.parametrize("data", [data_of, stream_of])
    def test_workers_that_stay(self, torch: Any, workers: int, data: Any) -> None:
        options = {"num_workers": workers, "persistent_workers": True}
        assert_same(torch, lambda lib: loader(lib, data, 2, **options))

    @pytest.mark.parametrize("prefetch", [1, 3, 10])
    def test_how_far_workers_read_ahead(self, torch: Any, prefetch: int) -> None:
        options = {"num_workers": 2, "prefetch_factor": prefetch}
        assert_same(torch, lambda lib: loader(lib, data_of, 2, **options))

    @pytest.mark.parametrize("workers", WORKERS)
    def test_samples_one_by_one(self, torch: Any, workers: int) -> None:
        assert_same(torch, lambda lib: loader(lib, data_of, None, num_workers=workers))

    def test_a_batch_sampler(self, torch: Any) -> None:
        options = {"num_workers": 2, "batch_sampler": [[3, 1], [2], [5, 6, 7]]}
        assert_same(torch, lambda lib: loader(lib, data_of, **options))

    def test_worker_init_fn_is_called_with_the_number_before_reading(self, torch: Any) -> None:
        def make(lib: Any) -> Any:
            def init(number: int) -> None:
                info = lib.utils.data.get_worker_info()
                assert (info.id, info.num_workers) == (number, 2)
                lib.manual_seed(info.seed + 5)
                np.random.seed(number)
                random.seed(info.seed % 17)

            return loader(lib, data_of, 3, num_workers=2, worker_init_fn=init)

        assert_same(torch, make)

    def test_the_caller_draws_between_batches(self, torch: Any) -> None:
        def drawn(lib: Any) -> Any:
            lib.manual_seed(1)
            batches = loader(lib, data_of, 2, shuffle=True, num_workers=2)
            return [(as_lists(batch), lib.rand(1).tolist()) for batch in batches]

        assert drawn(plugrad) == drawn(torch)

    def test_what_get_worker_info_gives(self, torch: Any) -> None:
        def fields(lib: Any) -> Any:
            def look(number: int) -> None:
                info = lib.utils.data.get_worker_info()
                seen.append((info.id, info.num_workers, info.dataset[0], info.worker_method))

            class Seen(lib.utils.data.Dataset):  # type: ignore[misc, name-defined]
                def __getitem__(self, index: int) -> Any:
                    return str(seen) if seen else "data"

                def __len__(self) -> int:
                    return 2

            seen: list[Any] = []
            options = {"num_workers": 2, "worker_init_fn": look, "collate_fn": list}
            return list(lib.utils.data.DataLoader(Seen(), **options))

        assert fields(plugrad) == fields(torch)
        assert plugrad.utils.data.get_worker_info() is None

    def test_an_error_leaves_the_next_batches(self, torch: Any) -> None:
        def read(lib: Any) -> Any:
            class Holes(lib.utils.data.Dataset):  # type: ignore[misc, name-defined]
                def __getitem__(self, index: int) -> int:
                    if index in (2, 3):
                        raise ValueError("a hole")
                    return index

                def __len__(self) -> int:
                    return 6

            batches = iter(lib.utils.data.DataLoader(Holes(), 1, num_workers=2))
            found: list[Any] = []
            for _ in range(6):
                try:
                    found.append(next(batches).tolist())
                except ValueError as error:
                    found.append(str(error).splitlines()[0])
            assert next(batches, None) is None
            return found

        assert read(plugrad) == read(torch)


class Images(plugrad.utils.data.Dataset[Any]):
    def __getitem__(self, index: int) -> Any:
        return plugrad.full((3, 32, 32), float(index)), index

    def __len__(self) -> int:
        return 8


def raw(samples: list[Any]) -> Any:
    return samples


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_every_start_method_gives_the_batches(method: str) -> None:
    batches = plugrad.utils.data.DataLoader(
        Images(), 2, num_workers=2, multiprocessing_context=method
    )
    for image, index in batches:
        assert image.shape == (2, 3, 32, 32)
        assert image[:, 0, 0, 0].tolist() == index.tolist()


def test_large_tensors_lie_in_shared_memory_and_can_be_written_to() -> None:
    for image, _ in plugrad.utils.data.DataLoader(Images(), 2, num_workers=1):
        assert image.is_shared()
        image += 1


def test_memory_is_used_again_only_when_nothing_has_it() -> None:
    loader = plugrad.utils.data.DataLoader(Images(), 1, num_workers=2, persistent_workers=True)
    kept = [image[0, 0] for _ in range(3) for image, _ in loader]  # a view keeps its memory
    fresh = [(image.sum().item(), index.item()) for _ in range(3) for image, index in loader]
    assert [view[0, 0].item() for view in kept] == list(range(8)) * 3
    assert fresh == [(3 * 32 * 32 * index, index) for index in range(8)] * 3


def test_a_program_that_keeps_all_batches_keeps_a_bounded_number_of_files() -> None:
    loader = plugrad.utils.data.DataLoader(Images(), 1, num_workers=2, persistent_workers=True)
    kept = [image for _ in range(50) for image, _ in loader]
    assert [image[0, 0, 0, 0].item() for image in kept] == list(range(8)) * 50
    assert sum(image.is_shared() for image in kept) <= 300
    assert not kept[-1].is_shared()


def strided() -> list[Any]:
    whole = plugrad.arange(2 * 40 * 50.0).view(2, 40, 50)
    return [
        whole.permute(2, 0, 1),
        whole[:, ::2],
        whole[0, 0].expand(60, 50),
        whole.to(plugrad.bfloat16),
        whole.to(plugrad.complex64).conj(),
        plugrad.zeros(0, 3),
        plugrad.tensor(True),
        plugrad.nn.Parameter(whole.clone()),
        whole.numpy(),
        whole.numpy().T,
        np.arange(3, dtype=object),
        "text" * 2000,
    ]


class Strided(plugrad.utils.data.Dataset[Any]):
    def __getitem__(self, index: int) -> Any:
        return strided()[index]

    def __len__(self) -> int:
        return len(strided())


def test_every_kind_of_tensor_and_array_arrives_as_it_was() -> None:
    batches = plugrad.utils.data.DataLoader(Strided(), None, num_workers=2, collate_fn=raw)
    for sent, got in zip(strided(), batches, strict=True):
        assert type(got) is type(sent)
        if isinstance(sent, plugrad.Tensor):
            assert got.dtype is sent.dtype
            assert got.requires_grad == sent.requires_grad
            assert plugrad.equal(got, sent)
        else:
            assert np.array_equal(got, sent)
    # Without gaps, the order in memory stays.
    first = next(iter(batches))
    assert first.stride() == strided()[0].stride()


def test_out_of_order_batches_are_all_there() -> None:
    options = {"num_workers": 2, "in_order": False}
    batches = [b.tolist() for b in plugrad.utils.data.DataLoader(range(9), 2, **options)]
    assert sorted(itertools.chain(*batches)) == list(range(9))


class FirstWaits(plugrad.utils.data.IterableDataset[int]):
    """Worker 0 gives nothing before worker 1 has given all."""

    def __init__(self, is_done: Any) -> None:
        self.is_done = is_done

    def __iter__(self) -> Iterator[int]:
        info = plugrad.utils.data.get_worker_info()
        assert info is not None
        if info.id == 0:
            self.is_done.wait(30)
        for place in range(4):
            yield 10 * info.id + place
        self.is_done.set()


def test_out_of_order_a_slow_worker_holds_nobody_up() -> None:
    import multiprocessing

    data = FirstWaits(multiprocessing.get_context("fork").Event())
    options = {"num_workers": 2, "in_order": False, "multiprocessing_context": "fork"}
    found = list(plugrad.utils.data.DataLoader(data, None, **options))
    assert found[:3] == [10, 11, 12]
    assert sorted(found) == [0, 1, 2, 3, 10, 11, 12, 13]


def test_two_epochs_at_a_time_do_not_mix() -> None:
    loader = plugrad.utils.data.DataLoader(range(6), 2, num_workers=2)
    pairs = [(a.tolist(), b.tolist()) for a, b in zip(loader, loader, strict=True)]
    assert pairs == [([0, 1], [0, 1]), ([2, 3], [2, 3]), ([4, 5], [4, 5])]


def test_an_epoch_that_was_left_does_not_reach_into_the_next() -> None:
    loader = plugrad.utils.data.DataLoader(range(8), 1, num_workers=2, persistent_workers=True)
    for _ in range(3):
        assert next(iter(loader)).tolist() == [0]
    assert [batch.item() for batch in loader] == list(range(8))


def test_indices_may_be_more_than_a_pipe_holds() -> None:
    many = [list(range(200_000))] * 6
    options = {"batch_sampler": many, "num_workers": 2, "collate_fn": raw}
    for batch in plugrad.utils.data.DataLoader(range(200_000), **options):
        assert len(batch) == 200_000


def test_batches_of_a_default_device_arrive_there(second_backend: str) -> None:
    with plugrad.device(second_backend):
        image, index = next(iter(plugrad.utils.data.DataLoader(Images(), 2, num_workers=1)))
    assert {image.device.type, index.device.type} == {second_backend}


def test_a_cached_batch_that_is_sent_twice_is_not_overwritten() -> None:
    collate = functools.cache(lambda: plugrad.utils.data.default_collate([plugrad.ones(3000)] * 2))
    options = {"num_workers": 1, "collate_fn": lambda samples: (samples[0], collate())}
    seen = list(plugrad.utils.data.DataLoader(range(6), 1, **options))
    assert all(batch.eq(1).all() for _, batch in seen)
    first = seen[0][1]
    del seen
    assert first.eq(1).all()


@pytest.mark.parametrize("strategy", sorted(plugrad.multiprocessing.get_all_sharing_strategies()))
def test_tensors_of_a_data_set_are_shared_with_workers_that_are_spawned(strategy: str) -> None:
    data = plugrad.utils.data.TensorDataset(plugrad.arange(6), plugrad.rand(6, 2))
    before = plugrad.multiprocessing.get_sharing_strategy()
    plugrad.multiprocessing.set_sharing_strategy(strategy)
    try:
        batches = plugrad.utils.data.DataLoader(
            data, 2, num_workers=2, multiprocessing_context="spawn"
        )
        found = plugrad.cat([numbers for numbers, _ in batches])
    finally:
        plugrad.multiprocessing.set_sharing_strategy(before)
    assert found.tolist() == [0, 1, 2, 3, 4, 5]
    assert all(tensor.is_shared() for tensor in data.tensors)
