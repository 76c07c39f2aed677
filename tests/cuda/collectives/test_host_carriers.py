"""Arrays of GPUs with carriers of hosts: by way of page-locked memory, or in place where MPI takes
memory of GPUs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import plugrad
from plugrad import distributed as dist
from plugrad_distributed.carriers.cuda_aware import AfterStreams, is_cuda_aware
from tests.cuda.collectives.fake_nccl import FakeNccl


@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (0,)])
def test_arrays_pass_through_page_locked_memory(nccl: FakeNccl, shape: tuple[int, ...]) -> None:
    def run() -> Any:
        x = plugrad.full(shape, 1.0 + dist.get_rank(), device="cuda:0")
        dist.all_reduce(x)
        y = plugrad.zeros(2, 2, device="cuda:0").T
        dist.broadcast(y.fill_(dist.get_rank()), 1)
        return x.cpu().tolist(), y.cpu().tolist()

    expected = plugrad.full(shape, 3.0).tolist(), [[1.0, 1.0], [1.0, 1.0]]
    nccl.cupy.log.clear()
    assert dist.run_ranks(run, 2) == [expected, expected]
    log = nccl.cupy.log
    copies = [at for at, entry in enumerate(log) if entry[0] == "to host" and not entry[2]]
    assert len(copies) >= 4
    for at in copies:
        # A message is not sent before it is computed.
        assert ("synchronize", log[at][1]) in log[at:]
    assert [entry for entry in log if entry[0] == "from pinned"]


def test_mpi_gets_memory_of_gpus_once_their_streams_are_done(nccl: FakeNccl) -> None:
    cupy = nccl.cupy
    array = cupy.zeros((3,), "float32")

    def note(name: str) -> Any:
        return lambda *arguments: cupy.log.append((name, len(arguments)))

    names = ("Iallreduce", "Ialltoallv", "Get_rank")
    comm = AfterStreams(SimpleNamespace(**{name: note(name) for name in names}))
    cupy.log.clear()
    for _ in range(2):
        comm.Iallreduce(array, array, "sum")
    comm.Ialltoallv([array, [3]], ["host", [3]])
    comm.Iallreduce("host", "host", "sum")
    comm.Get_rank()
    waits = ("synchronize", "default 0 of 0")
    assert cupy.log == [
        *([waits, waits, ("Iallreduce", 3)] * 2),
        *(waits, ("Ialltoallv", 2)),
        *(("Iallreduce", 3), ("Get_rank", 0)),
    ]


@pytest.mark.parametrize(("setting", "found"), [("1", True), ("0", False), ("", False)])
def test_the_setting_or_the_library_says_whether_mpi_takes_memory_of_gpus(
    monkeypatch: pytest.MonkeyPatch, setting: str, found: bool
) -> None:
    monkeypatch.setenv("PLUGRAD_DISTRIBUTED_CUDA_AWARE", setting)
    assert is_cuda_aware(SimpleNamespace(__file__="no such library")) is found


def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLUGRAD_DISTRIBUTED_CUDA_AWARE", "yes")
    with pytest.raises(ValueError, match="PLUGRAD_DISTRIBUTED_CUDA_AWARE must be 0 or 1, got 'ye"):
        is_cuda_aware(SimpleNamespace(__file__=""))
