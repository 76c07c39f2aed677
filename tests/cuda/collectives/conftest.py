"""plugrad-cuda's carrier over fakes of CuPy and its NCCL module."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import plugrad
from plugrad.autograd.engine.engine import ENGINE
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from tests.cuda.collectives.fake_nccl import FakeNccl
from tests.cuda.runtime.conftest import CudaOverFake, _forget_memory_and_streams, install
from tests.cuda.runtime.fake_cupy import FakeCupy

pytest.importorskip("plugrad_distributed", reason="plugrad-distributed is not installed")

__all__ = ["install"]

RANKS = 3
Ranks = Callable[..., list[Any]]


@pytest.fixture
def nccl(
    install: Callable[[FakeCupy], FakeCupy], monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeNccl]:
    """The backend "cuda" over three GPUs, and NCCL between them."""
    _forget_memory_and_streams()
    cupy = install(FakeCupy(RANKS))
    cupy.pool.bytes = [0] * RANKS
    found = FakeNccl(cupy)
    monkeypatch.setitem(sys.modules, "cupy.cuda.nccl", found)
    ENGINE.stop()
    activate_backend(CudaOverFake())
    yield found
    ENGINE.stop()
    deactivate_backend("cuda")
    _forget_memory_and_streams()


@pytest.fixture
def ranks(nccl: FakeNccl) -> Ranks:
    """Calls a function on ranks that are threads with a GPU each, and returns what each gave."""
    from plugrad_cuda.collectives.carrier import NCCLCarrier
    from plugrad_distributed.carriers.threads import Exchange, ThreadsCarrier
    from plugrad_distributed.groups.process_group import ProcessGroup
    from plugrad_distributed.groups.world import World, play

    def run(function: Callable[..., Any], count: int = RANKS, limit: float = 20.0) -> list[Any]:
        exchange = Exchange(count)
        found: list[Any] = [None] * count

        def one(rank: int) -> None:
            world = World(f"@{rank}/{id(exchange)}")
            play(world)
            nccl.cupy.local.device = rank
            try:
                host = ThreadsCarrier(exchange, "world", range(count), rank)
                name = world.new_name()
                carriers = {"": NCCLCarrier(host)}
                world.default = ProcessGroup(name, range(count), carriers, limit, "nccl")
                world.add(world.default)
                with plugrad.autograd.set_multithreading_enabled(False):
                    found[rank] = function()
            except BaseException as error:
                found[rank] = error
                exchange.failed[rank] = error
            finally:
                world.clear()
                play(None)

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    return run
