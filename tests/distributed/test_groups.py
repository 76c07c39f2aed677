"""Groups: how they are made and queried, and how operations fail."""

from __future__ import annotations

import copy
import types
from typing import Any

import pytest

import plugrad
from plugrad import distributed as dist
from plugrad.plugins import PluginError, get_manager, hookimpl


@pytest.fixture
def alone() -> Any:
    dist.init_process_group("alone")
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_one_process_needs_nothing(alone: None) -> None:
    assert dist.is_initialized()
    assert dist.is_available()
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "alone")
    x = plugrad.arange(3.0)
    dist.all_reduce(x)
    dist.broadcast(x, 0)
    dist.barrier()
    dist.monitored_barrier()
    parts = [plugrad.zeros(3)]
    dist.all_gather(parts, x)
    assert parts[0].tolist() == x.tolist() == [0.0, 1.0, 2.0]
    work = dist.isend(x, 0)
    assert work is not None
    work.wait()
    y = plugrad.zeros(3)
    assert dist.recv(y, 0) == 0
    assert y.tolist() == x.tolist()


def test_without_a_backend_one_process_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID"):
        monkeypatch.delenv(name, raising=False)
    dist.init_process_group()
    assert dist.get_backend() == "alone"
    dist.destroy_process_group()
    assert not dist.is_initialized()


def test_ranks_and_groups() -> None:
    def program() -> Any:
        rank = dist.get_rank()
        odd = dist.new_group([3, 1], group_desc="odd ones")
        own, every = dist.new_subgroups(2)
        assert len(every) == 2
        x = plugrad.tensor([float(rank)])
        dist.all_reduce(x, group=own)
        if rank % 2 == 0:
            assert odd is dist.GroupMember.NON_GROUP_MEMBER
            assert dist.get_rank(odd) == dist.get_world_size(odd) == -1
            with pytest.warns(UserWarning, match="not part of the group"):
                assert dist.all_reduce(x, group=odd) is None
        else:
            assert odd.group_desc == "odd ones"
            assert dist.get_process_group_ranks(odd) == [1, 3]
            assert dist.get_rank(odd) == rank // 2
            assert dist.get_global_rank(odd, 1) == 3
            assert dist.get_group_rank(odd, 3) == 1
            y = plugrad.tensor([float(rank)])
            dist.broadcast(y, 3, group=odd)
            assert y.item() == 3
            y = plugrad.tensor([float(rank)])
            dist.broadcast(y, group_src=0, group=odd)
            assert y.item() == 1
            with pytest.raises(ValueError, match=r"src: rank 2.*\[1, 3\]"):
                dist.broadcast(y, 2, group=odd)
            dist.destroy_process_group(odd)
            with pytest.raises(dist.DistError, match=r"cannot be used any more.*destroyed"):
                dist.all_reduce(y, group=odd)
        return x.item()

    assert dist.run_ranks(program, 4) == [1.0, 1.0, 5.0, 5.0]


def test_a_group_stands_for_itself_in_copies(alone: None) -> None:
    group = dist.group.WORLD
    assert group is not None
    assert group is dist.GroupMember.WORLD
    assert copy.deepcopy(group) is group
    assert repr(group) == "<ProcessGroup '0': rank 0 of 1, backend 'alone'>"


@pytest.mark.parametrize(
    "arguments",
    [
        {"backend": "gloo", "init_method": "tcp://127.0.0.1:29500", "rank": 0, "world_size": 1},
        {"backend": "gloo", "init_method": "file:///no/such/file", "rank": 0, "world_size": 1},
        {"backend": "alone", "store": object(), "rank": 0, "world_size": 1},
    ],
)
def test_one_process_meets_nobody(
    arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs for PyTorch that run on one process say how it would find the others."""
    for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "MPI_LOCALRANKID"):
        monkeypatch.delenv(name, raising=False)
    dist.init_process_group(**arguments)
    assert (dist.get_rank(), dist.get_world_size()) == (0, 1)
    assert dist.get_backend() == arguments["backend"]
    x = plugrad.ones(2)
    dist.all_reduce(x)
    assert x.tolist() == [1.0, 1.0]
    dist.destroy_process_group()


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "backend": ({"backend": "carrots"}, ValueError, "'carrots'.*'alone'"),
    "type": ({"backend": 3}, TypeError, "backend must be a string, got int"),
    "form": ({"backend": "cpu:alone,cpu:alone"}, ValueError, "device:name"),
    "rank": ({"backend": "alone", "rank": 1, "world_size": 2}, ValueError, "one process.*rank 1"),
    "timeout": ({"backend": "alone", "timeout": -1}, ValueError, "timeout must be positive"),
    "timeout's type": ({"backend": "alone", "timeout": "1"}, TypeError, "timedelta.*str"),
    "method": ({"backend": "alone", "init_method": "tcp://a:1"}, ValueError, "env://"),
    "store": ({"backend": "alone", "store": object()}, ValueError, "store must be None"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_group_that_cannot_be_made(case: str) -> None:
    arguments, error, message = WRONG[case]
    with pytest.raises(error, match=message):
        dist.init_process_group(**arguments)
    assert not dist.is_initialized()


def test_nothing_works_before_and_twice_is_once_too_often(alone: None) -> None:
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("alone")
    dist.destroy_process_group()
    for ask in (dist.get_rank, dist.barrier, dist.destroy_process_group):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            ask()


@pytest.mark.parametrize(
    ("ranks", "message"), [([0, 7], r"interval \[0, 0\], got 7"), ([0, 0], "twice"), ([], "none")]
)
def test_ranks_of_a_group(alone: None, ranks: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dist.new_group(ranks)


def test_an_operation_that_nobody_answers_names_itself() -> None:
    def program() -> None:
        if dist.get_rank() == 1:
            return
        with pytest.raises(dist.DistTimeoutError, match=r"all_reduce\(.*sum\).*0.2 s on rank 0"):
            dist.all_reduce(plugrad.ones(2))
        # Ranks would not agree any more which operation is which.
        with pytest.raises(dist.DistError, match=r"cannot be used any more.*all_reduce"):
            dist.barrier()

    dist.run_ranks(program, 2, timeout=0.2)


def test_a_rank_that_fails_stops_the_others() -> None:
    def program() -> None:
        if dist.get_rank() == 1:
            raise KeyError("a mistake")
        with pytest.raises(dist.DistBackendError, match="rank 1 ended with KeyError"):
            dist.barrier()

    with pytest.raises(KeyError, match="a mistake"):
        dist.run_ranks(program, 3)


def test_monitored_barrier_names_who_is_missing() -> None:
    def program() -> None:
        rank = dist.get_rank()
        if rank == 0:
            with pytest.raises(
                dist.DistBackendError, match=r"ranks 1, 3 did not arrive within 0.1 s"
            ):
                dist.monitored_barrier(timeout=0.1, wait_all_ranks=True)
        elif rank == 2:
            with pytest.raises(dist.DistTimeoutError):
                dist.monitored_barrier(timeout=0.2)

    dist.run_ranks(program, 4)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            lambda: dist.all_reduce(plugrad.ones(2)),
            lambda: dist.all_reduce(plugrad.ones(3)),
            r"rank 0: #1 all_reduce\(plugrad.float32 \[2\], sum\); rank 1: #1 .*\[3\]",
        ),
        (
            lambda: dist.all_reduce(plugrad.ones(2)),
            lambda: dist.broadcast(plugrad.ones(2), 0),
            "rank 0: #1 all_reduce.*rank 1: #1 broadcast",
        ),
        (
            lambda: dist.functional.all_gather(plugrad.ones(2)),
            lambda: dist.functional.all_gather(plugrad.ones(2).double()),
            r"rank 0: .*float32.*rank 1: .*float64",
        ),
    ],
    ids=["shapes", "operations", "dtypes"],
)
def test_debug_names_ranks_that_do_not_agree(
    first: Any, second: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUGRAD_DISTRIBUTED_DEBUG", "1")

    def program() -> None:
        with pytest.raises(dist.DistBackendError, match=message):
            (first, second)[dist.get_rank()]()

    dist.run_ranks(program, 2)


def test_debug_lets_pass_what_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLUGRAD_DISTRIBUTED_DEBUG", "1")

    def program() -> float:
        x = plugrad.ones(2)
        dist.all_reduce(x)
        dist.barrier()
        if dist.get_rank() == 0:
            dist.send(x, 1)
        else:
            dist.recv(x, 0)
        return float(x.sum().item())

    assert dist.run_ranks(program, 2) == [4.0, 4.0]


# Carriers of others


class Countdown(dist.Carrier):
    """One rank; its operations are counted."""

    name = "countdown"
    sent = 0

    @classmethod
    def world(
        cls, rank: int, size: int, options: Any = None, timeout: float = 60.0
    ) -> dist.Carrier:
        return cls(0, 1)

    def split(self, ranks: Any, name: str) -> dist.Carrier:
        return self

    def send(self, array: Any, dst: int, tag: int) -> None:
        type(self).sent += array.size


def plugin(**carriers: Any) -> Any:
    module = types.ModuleType("carriers_of_a_test")
    vars(module)["plugrad_carriers"] = hookimpl(lambda: carriers)
    return module


def test_a_package_brings_a_carrier() -> None:
    get_manager().register(plugin(countdown=Countdown), "countdown")
    try:
        dist.init_process_group("countdown")
        assert dist.get_backend() == "countdown"
        x = plugrad.ones(4)
        dist.all_reduce(x)  # composed of sends; one rank needs none
        dist.functional.all_gather(x)
        dist.isend(x, 0)
        assert Countdown.sent == 4
        assert dist.is_backend_available("countdown")
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
        get_manager().unregister("countdown")
    assert not dist.is_backend_available("countdown")


def test_carriers_that_cannot_be_used() -> None:
    get_manager().register(plugin(odd="no_such_module:Carrier", strange=int), "odd")
    try:
        with pytest.raises(PluginError, match=r"'odd'.*no_such_module"):
            dist.init_process_group("odd")
        with pytest.raises(PluginError, match=r"'strange'.*not a Carrier"):
            dist.init_process_group("strange")
        assert not dist.is_initialized()
    finally:
        get_manager().unregister("odd")
