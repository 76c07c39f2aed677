"""MPI may detect that a process has ended before the monitor does. The message still names the
rank."""

from __future__ import annotations

import json
import socket
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plugrad_distributed.carriers.monitor import Monitor
from plugrad_distributed.carriers.mpi_types import TYPES
from plugrad_distributed.errors import DistBackendError
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.reduce_op import ReduceOp
from tests.distributed.under_mpi import needs_mpi

pytestmark = needs_mpi
pytest.importorskip("mpi4py")
from plugrad_distributed.carriers.mpi import OF_CALLERS, MPICarrier  # noqa: E402


class Refused(Exception):
    """An exception of mpi4py's."""

    def __init__(self, code: str) -> None:
        super().__init__("Other MPI error")
        self.code = code

    def Get_error_class(self) -> str:
        return self.code


class Broken:
    """A communicator with operations that fail, at once or when they are tested."""

    def __init__(self, code: str, at_once: bool, rank: int = 0) -> None:
        self.code = code
        self.at_once = at_once
        self.rank = rank

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return 2

    def Iallreduce(self, *given: Any) -> Any:
        if self.at_once:
            raise Refused(self.code)
        return self

    def Test(self, status: Any = None) -> bool:
        raise Refused(self.code)


def carrier_of(comm: Broken, link: socket.socket | None) -> Any:
    """A carrier with a fake of `mpi4py.MPI`, because importing that would start MPI here."""
    names = {name: name for name in (*OF_CALLERS, "IN_PLACE", "ANY_SOURCE", "SUM", "MAX")}
    types = {name: name for name in TYPES.values()}
    fake = SimpleNamespace(Exception=Refused, **names, **types)
    return MPICarrier(fake, comm, Monitor(comm.rank, 2, link, None), [0, 1], "world")


def summed(carrier: Any, array: Any, op: ReduceOp) -> None:
    if op is ReduceOp.SUM:
        group = ProcessGroup("pair", [0, 1], {"": carrier}, 5.0, "mpi")
        assert group.sum_now is not None
        group.sum_now(array)
    else:
        carrier.all_reduce(array, array, op).test()


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("op", [ReduceOp.SUM, ReduceOp.MAX])
def test_an_error_of_mpi_waits_for_the_news_of_the_rank_that_ended(
    at_once: bool, op: ReduceOp
) -> None:
    near, far = socket.socketpair()
    with near, far:
        carrier = carrier_of(Broken("ERR_OTHER", at_once), near)
        news = json.dumps({"rank": 1, "ended": "lost", "how": ""}).encode() + b"\n"
        later = threading.Timer(0.05, far.sendall, [news])
        later.start()
        array = np.ones(3, np.float32)
        with pytest.raises(DistBackendError, match="rank 1 ended without an exception"):
            summed(carrier, array, op)
        later.join()


@pytest.mark.parametrize("before", [0.0, 0.05])
def test_an_error_of_mpi_names_rank_0_that_was_heard_to_end_just_before(before: float) -> None:
    near, far = socket.socketpair()
    with near:
        carrier = carrier_of(Broken("ERR_OTHER", False, rank=1), near)
        far.close()
        time.sleep(before)
        with pytest.raises(DistBackendError, match="rank 0 ended without an exception"):
            summed(carrier, np.ones(3, np.float32), ReduceOp.MAX)


def test_an_error_of_the_call_itself_is_told_at_once() -> None:
    carrier = carrier_of(Broken("ERR_TRUNCATE", False), None)
    array = np.ones(3, np.float32)
    with pytest.raises(DistBackendError, match=r"^MPI: Other MPI error$"):
        carrier.all_reduce(array, array, ReduceOp.MAX).test()
