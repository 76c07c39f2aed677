"""Of a process that is gone MPI may know before the monitor does. Users read which rank it was."""

from __future__ import annotations

import json
import socket
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plugrad_distributed.errors import DistBackendError
from plugrad_distributed.reduce_op import ReduceOp
from tests.distributed.under_mpi import needs_mpi

pytestmark = needs_mpi


class Refused(Exception):
    """An exception of mpi4py's."""

    def __init__(self, code: int) -> None:
        super().__init__("Other MPI error")
        self.code = code

    def Get_error_class(self) -> int:
        return self.code


class Broken:
    """A communicator whose operations fail, at once or when they are asked."""

    def __init__(self, code: int, at_once: bool) -> None:
        self.code = code
        self.at_once = at_once

    def Get_rank(self) -> int:
        return 0

    def Get_size(self) -> int:
        return 2

    def Iallreduce(self, *given: Any) -> Any:
        if self.at_once:
            raise Refused(self.code)
        return self

    def Test(self, status: Any = None) -> bool:
        raise Refused(self.code)


def carrier_of(comm: Broken, link: socket.socket | None) -> Any:
    from mpi4py import MPI

    from plugrad_distributed.carriers.monitor import Monitor
    from plugrad_distributed.carriers.mpi import OF_CALLERS, MPICarrier

    names = {name: getattr(MPI, name) for name in (*OF_CALLERS, "IN_PLACE", "ANY_SOURCE", "SUM")}
    types = {
        name: getattr(MPI, name) for name in dir(MPI) if type(getattr(MPI, name)) is type(MPI.INT)
    }
    fake = SimpleNamespace(Exception=Refused, MAX=MPI.MAX, **{**types, **names})
    return MPICarrier(fake, comm, Monitor(0, 2, link, None), [0, 1], "world")


def summed(carrier: Any, array: Any, op: ReduceOp) -> None:
    if op is ReduceOp.SUM:
        carrier.sum_in_place(array)
    else:
        carrier.all_reduce(array, array, op).test()


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("op", [ReduceOp.SUM, ReduceOp.MAX])
def test_an_error_of_mpi_waits_for_the_news_of_the_rank_that_ended(
    at_once: bool, op: ReduceOp
) -> None:
    from mpi4py import MPI

    near, far = socket.socketpair()
    with near, far:
        carrier = carrier_of(Broken(MPI.ERR_OTHER, at_once), near)
        news = json.dumps({"rank": 1, "ended": "lost", "how": ""}).encode() + b"\n"
        later = threading.Timer(0.05, far.sendall, [news])
        later.start()
        array = np.ones(3, np.float32)
        with pytest.raises(DistBackendError, match="rank 1 ended without an exception"):
            summed(carrier, array, op)
        later.join()


def test_an_error_of_the_call_itself_is_told_at_once() -> None:
    from mpi4py import MPI

    carrier = carrier_of(Broken(MPI.ERR_TRUNCATE, False), None)
    array = np.ones(3, np.float32)
    with pytest.raises(DistBackendError, match=r"^MPI: Other MPI error$"):
        carrier.all_reduce(array, array, ReduceOp.MAX).test()
