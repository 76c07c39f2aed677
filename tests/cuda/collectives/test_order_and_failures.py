"""When operations of GPUs start and end, in the order of streams; and what follows when they do
not end."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from typing import Any

import pytest

import plugrad
from plugrad import distributed as dist
from plugrad.errors import PluginError
from plugrad_distributed.errors import DistBackendError, DistError, DistTimeoutError
from tests.cuda.collectives.conftest import RANKS, Ranks
from tests.cuda.collectives.fake_nccl import FakeNccl, NcclError


def on_gpu(size: int = 4) -> plugrad.Tensor:
    return plugrad.ones(size, device=f"cuda:{dist.get_rank()}")


def own_carrier() -> Any:
    group = dist.group.WORLD
    assert group is not None
    return group.carrier("cuda")


def make_busy(nccl: FakeNccl, gate: threading.Barrier) -> None:
    """From now on, what the carriers' streams are given does not end."""
    gate.wait(20)
    names = {entry[2] for entry in nccl.cupy.log if entry[0] == "nccl"}
    nccl.cupy.busy = names  # type: ignore[attr-defined]
    gate.wait(20)


def test_an_operation_is_between_what_the_stream_was_given_before_and_afterwards(
    nccl: FakeNccl, ranks: Ranks
) -> None:
    def run() -> None:
        work = dist.all_reduce(on_gpu(), async_op=True)
        nccl.cupy.log.append((dist.get_rank(), "started"))
        assert work is not None
        work.wait()
        nccl.cupy.log.append((dist.get_rank(), "waited"))

    assert ranks(run) == [None] * RANKS
    log = nccl.cupy.log
    for rank in range(RANKS):
        own = f"default 0 of {rank}"
        (call,) = [entry for entry in log if entry[0] == "nccl" and entry[2].endswith(f"of {rank}")]
        at, stream = log.index(call), call[2]
        order = [
            log.index(("record", own)),
            log.index(("wait", stream, own)),
            at,
            log.index(("record", stream), at),
            log.index((rank, "started")),
            log.index(("wait", own, stream)),
            log.index((rank, "waited")),
        ]
        assert order == sorted(order)
        assert ("synchronize", stream) not in log[: order[-1]]


def test_work_is_completed_once_the_gpu_is(nccl: FakeNccl, ranks: Ranks) -> None:
    gate = threading.Barrier(RANKS)

    def run() -> list[bool]:
        work = dist.all_reduce(on_gpu(), async_op=True)
        assert work is not None
        make_busy(nccl, gate)
        before = work.is_completed()
        gate.wait(20)
        nccl.cupy.busy = set()  # type: ignore[attr-defined]
        return [before, work.is_completed()]

    assert ranks(run) == [[False, True]] * RANKS


def test_messages_of_a_batch_start_together(nccl: FakeNccl, ranks: Ranks) -> None:
    def run() -> bool:
        rank, got = dist.get_rank(), on_gpu()
        left, right = (rank - 1) % RANKS, (rank + 1) % RANKS
        works: list[Any] = dist.batch_isend_irecv(
            [dist.P2POp(dist.irecv, got, left), dist.P2POp(dist.isend, on_gpu(), right)]
        )
        same = len({id(work._request.done) for work in works}) == 1
        for work in works:
            work.wait()
        return same

    assert ranks(run) == [True] * RANKS
    # Within a group of calls a send does not wait for an earlier receive.
    assert sorted(name for name, _, _ in nccl.log) == ["recv"] * RANKS + ["send"] * RANKS


def test_a_message_of_any_rank_is_refused(ranks: Ranks) -> None:
    found = ranks(lambda: dist.recv(on_gpu()))
    assert "recv(): src must be given" in str(found[0])


def test_groups_destroy_their_communicators_once_the_streams_are_done(
    nccl: FakeNccl, ranks: Ranks
) -> None:
    ranks(lambda: dist.all_reduce(on_gpu()))
    assert sorted(nccl.let_go) == [("destroy", rank) for rank in range(RANKS)]
    assert [entry for entry in nccl.cupy.log if entry[0] == "synchronize"]


def test_an_error_of_nccl_is_told_and_the_group_is_not_used_again(
    nccl: FakeNccl, ranks: Ranks
) -> None:
    nccl.broken = NcclError("unhandled system error")

    def run() -> list[str]:
        found = []
        for kind in (DistBackendError, DistError):
            with pytest.raises(kind) as told:
                dist.all_reduce(on_gpu())
            found.append(str(told.value))
        return found

    for rank, (first, second) in enumerate(ranks(run)):
        assert first.startswith("all_reduce(plugrad.float32 [4], sum) in group '0")
        assert first.endswith(f"failed on rank {rank}: NCCL: unhandled system error")
        assert "cannot be used any more: all_reduce(" in second
    assert sorted(nccl.let_go) == [("abort", rank) for rank in range(RANKS)]


def test_a_rank_that_is_gone_makes_others_raise(nccl: FakeNccl, ranks: Ranks) -> None:
    gate = threading.Barrier(RANKS)

    def run() -> None:
        dist.all_reduce(on_gpu())
        gate.wait(20)
        if dist.get_rank() == 1:
            raise ValueError("the data are rotten")
        end = time.monotonic() + 20
        while time.monotonic() < end:
            own_carrier().check_others()

    found = ranks(run)
    for error in (found[0], found[2]):
        assert str(error) == "rank 1 ended with ValueError: the data are rotten"
    # The others take what is under way from their GPUs.
    assert {("abort", 0), ("abort", 2)} <= set(nccl.let_go)


def test_the_first_collective_names_what_it_waits_for(ranks: Ranks) -> None:
    def run() -> None:
        if dist.get_rank() == 0:
            dist.all_reduce(on_gpu())

    found = ranks(run, limit=0.3)
    assert isinstance(found[0], DistTimeoutError)
    assert "the first collective of GPUs did not begin within 0.3 s" in str(found[0])


@pytest.fixture
def ended(nccl: FakeNccl, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Why a process would have ended."""
    found: list[str] = []
    module = importlib.import_module("plugrad_cuda.collectives.carrier")
    monkeypatch.setattr(module, "end_process", found.append)
    return found


def test_what_nobody_waits_for_and_does_not_end_ends_the_process(
    nccl: FakeNccl, ranks: Ranks, ended: list[str]
) -> None:
    gate = threading.Barrier(RANKS)

    def run() -> None:
        x = on_gpu()
        dist.all_reduce(x)
        make_busy(nccl, gate)
        dist.all_reduce(x)
        end = time.monotonic() + 10
        while len(ended) < RANKS and time.monotonic() < end:
            time.sleep(0.01)

    ranks(run, limit=0.5)
    assert len(ended) == RANKS
    for told in ended:
        assert told.startswith("all_reduce(plugrad.float32 [4], sum) did not end within 0.5 s on")
    assert {how for how, _ in nccl.let_go} == {"abort"}


def test_the_host_waits_where_that_is_asked_for(
    nccl: FakeNccl, ranks: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLUGRAD_NCCL_BLOCKING_WAIT", "1")

    gate = threading.Barrier(RANKS)

    def run() -> str:
        x = on_gpu()
        dist.all_reduce(x)
        make_busy(nccl, gate)
        with pytest.raises(DistTimeoutError) as told:
            dist.all_reduce(x)
        return str(told.value)

    for rank, told in enumerate(ranks(run, limit=0.4)):
        assert "all_reduce(plugrad.float32 [4], sum) in group" in told
        assert f"did not end within 0.4 s on rank {rank}" in told
    assert {how for how, _ in nccl.let_go} == {"abort"}


def test_operators_run_on_the_gpu_where_the_carrier_takes_its_arrays(
    nccl: FakeNccl, ranks: Ranks
) -> None:
    from plugrad_distributed.operators.kernels import CUDA

    def run() -> list[float]:
        group = dist.group.WORLD
        assert group is not None
        found = CUDA["distributed::all_reduce"](on_gpu().array, "sum", group.name)
        return [found.device.id, *found.tolist()]

    assert ranks(run) == [[rank, 3.0, 3.0, 3.0, 3.0] for rank in range(RANKS)]
    assert {name for name, _, _ in nccl.log} == {"allReduce"}


def test_the_carrier_is_found_by_its_name(nccl: FakeNccl) -> None:
    from plugrad_cuda.collectives.carrier import NCCLCarrier

    assert dist.is_nccl_available()
    dist.init_process_group("nccl", rank=0, world_size=1)
    try:
        assert isinstance(own_carrier(), NCCLCarrier)
        x = plugrad.ones(3, device="cuda:0")
        dist.all_reduce(x)
        dist.barrier()
        assert x.tolist() == [1.0, 1.0, 1.0]
    finally:
        dist.destroy_process_group()


def test_without_its_library_the_error_names_the_package(
    nccl: FakeNccl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nccl, "available", False)
    for name in list(sys.modules):
        if name.startswith("plugrad_cuda.collectives.carrier"):
            monkeypatch.delitem(sys.modules, name)
    assert not dist.is_nccl_available()
    with pytest.raises(PluginError, match="pip install nvidia-nccl-cu12"):
        dist.init_process_group("nccl", rank=0, world_size=1)


def test_threads_that_watch_are_one(nccl: FakeNccl, ranks: Ranks) -> None:
    def run() -> None:
        for _ in range(3):
            dist.all_reduce(on_gpu())

    ranks(run)
    watching = [thread for thread in threading.enumerate() if thread.name == "plugrad nccl"]
    assert len(watching) == 1
