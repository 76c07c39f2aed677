"""`cupy.cuda.nccl` between threads, over memory of the host, with the signatures of CuPy 14.

A call is carried out at once, after all ranks have made it; NCCL would give it to the stream. It
says nothing about hardware. It checks that all ranks make the same calls, with pointers and numbers
that mean their arrays, on the GPU of the communicator.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from typing import Any

import numpy as np

from tests.cuda.runtime.fake_cupy import FakeCupy

PATIENCE = 20.0
DTYPES: dict[int, np.dtype[Any]] = {
    0: np.dtype(np.int8),
    1: np.dtype(np.uint8),
    2: np.dtype(np.int32),
    3: np.dtype(np.uint32),
    4: np.dtype(np.int64),
    5: np.dtype(np.uint64),
    6: np.dtype(np.float16),
    7: np.dtype(np.float32),
    8: np.dtype(np.float64),
}
OPERATIONS = {0: np.add, 1: np.multiply, 2: np.maximum, 3: np.minimum}


class NcclError(RuntimeError):
    """NCCL's errors."""


def memory(pointer: int, count: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The array at a pointer."""
    raw = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(pointer)
    return np.frombuffer(memoryview(raw), dtype)


class Shared:
    """What the ranks of one communicator share."""

    def __init__(self) -> None:
        self.news = threading.Condition()
        self.calls: dict[int, dict[int, Any]] = {}
        self.done: set[int] = set()
        self.sent: dict[tuple[int, int], list[np.ndarray[Any, Any]]] = {}

    def wait_for(self, ready: Any) -> None:
        if not self.news.wait_for(ready, PATIENCE):
            raise NcclError("the other ranks made no such call")


class FakeNccl:
    """The module.

    Attributes:
        log: calls, with the GPU and the stream of each.
        broken: calls raise this, if it is set.
    """

    available = True
    NcclError = NcclError
    NCCL_INT8, NCCL_UINT8, NCCL_INT32, NCCL_UINT32 = 0, 1, 2, 3
    NCCL_INT64, NCCL_UINT64, NCCL_FLOAT16, NCCL_FLOAT32, NCCL_FLOAT64 = 4, 5, 6, 7, 8
    NCCL_BFLOAT16 = 9
    NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN = 0, 1, 2, 3

    def __init__(self, cupy: FakeCupy) -> None:
        self.cupy = cupy
        self.log: list[tuple[str, int, int]] = []
        self.broken: Exception | None = None
        self.let_go: list[tuple[str, int]] = []
        self.shared: dict[tuple[int, ...], Shared] = {}
        self.group = threading.local()
        self._names = itertools.count(1)
        fake = self

        class NcclCommunicator:
            def __init__(self, ndev: int, commId: tuple[int, ...], rank: int) -> None:
                assert isinstance(commId, tuple)
                assert len(commId) == 128
                assert all(-128 <= number < 128 for number in commId)
                self.shared = fake.shared[commId]
                self.ndev, self.rank = ndev, rank
                self.device = fake.cupy.device()
                self.seq = itertools.count()

            def _meet(self, name: str, given: Any, stream: int) -> dict[int, Any]:
                """What all ranks called, once they have; the last one of them goes first."""
                fake.note(name, self.device, stream)
                place, shared = next(self.seq), self.shared
                with shared.news:
                    calls = shared.calls.setdefault(place, {})
                    calls[self.rank] = (name, *given)
                    shared.news.notify_all()
                    shared.wait_for(lambda: len(calls) == self.ndev)
                assert len({call[0] for call in calls.values()}) == 1, calls
                return calls

            def _gathered(self, name: str, pointer: int, count: int, kind: int, more: Any) -> Any:
                dtype = DTYPES[kind]
                own = memory(pointer, count, dtype).copy()
                calls = self._meet(name, (own, count, kind, *more[:-1]), more[-1])
                ranks = [calls[rank] for rank in range(self.ndev)]
                assert len({call[2:] for call in ranks}) == 1, "ranks differ in what they call"
                return np.stack([call[1] for call in ranks]), dtype

            def allReduce(
                self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int
            ) -> None:
                rows, dtype = self._gathered("allReduce", sendbuf, count, datatype, (op, stream))
                memory(recvbuf, count, dtype)[:] = OPERATIONS[op].reduce(rows, 0, dtype=dtype)

            def reduce(
                self,
                sendbuf: int,
                recvbuf: int,
                count: int,
                datatype: int,
                op: int,
                root: int,
                stream: int,
            ) -> None:
                rows, dtype = self._gathered("reduce", sendbuf, count, datatype, (op, root, stream))
                if self.rank == root:
                    memory(recvbuf, count, dtype)[:] = OPERATIONS[op].reduce(rows, 0, dtype=dtype)

            def broadcast(
                self,
                sendbuff: int,
                recvbuff: int,
                count: int,
                datatype: int,
                root: int,
                stream: int,
            ) -> None:
                rows, dtype = self._gathered("broadcast", sendbuff, count, datatype, (root, stream))
                memory(recvbuff, count, dtype)[:] = rows[root]

            def reduceScatter(
                self,
                sendbuf: int,
                recvbuf: int,
                recvcount: int,
                datatype: int,
                op: int,
                stream: int,
            ) -> None:
                rows, dtype = self._gathered(
                    "reduceScatter", sendbuf, recvcount * self.ndev, datatype, (op, stream)
                )
                whole = OPERATIONS[op].reduce(rows, 0, dtype=dtype)
                memory(recvbuf, recvcount, dtype)[:] = whole.reshape(self.ndev, -1)[self.rank]

            def allGather(
                self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int
            ) -> None:
                rows, dtype = self._gathered("allGather", sendbuf, count, datatype, (stream,))
                memory(recvbuf, count * self.ndev, dtype)[:] = rows.reshape(-1)

            def send(self, sendbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
                fake.note("send", self.device, stream)
                value = memory(sendbuf, count, DTYPES[datatype]).copy()
                with self.shared.news:
                    self.shared.sent.setdefault((self.rank, peer), []).append(value)
                    self.shared.news.notify_all()

            def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
                def receive() -> None:
                    fake.note("recv", self.device, stream)
                    key, shared = (peer, self.rank), self.shared
                    with shared.news:
                        shared.wait_for(lambda: shared.sent.get(key))
                        value = shared.sent[key].pop(0)
                    assert value.size == count, "a message of another size"
                    memory(recvbuf, count, DTYPES[datatype])[:] = value

                waiting = getattr(fake.group, "calls", None)
                if waiting is None:
                    receive()
                else:
                    waiting.append(receive)

            def destroy(self) -> None:
                fake.let_go.append(("destroy", self.device))

            def abort(self) -> None:
                fake.let_go.append(("abort", self.device))

        self.NcclCommunicator = NcclCommunicator

    def note(self, name: str, device: int, stream: int) -> None:
        if self.broken is not None:
            raise self.broken
        assert self.cupy.device() == device, f"{name} on the GPU of another communicator"
        current = self.cupy.current()
        assert current.ptr == stream, "not the current stream"
        self.log.append((name, device, stream))
        self.cupy.log.append(("nccl", name, current.name))

    def get_unique_id(self) -> tuple[int, ...]:
        number = next(self._names)
        name = tuple((number * 7 + place) % 256 - 128 for place in range(128))
        self.shared[name] = Shared()
        return name

    def groupStart(self) -> None:
        assert getattr(self.group, "calls", None) is None
        self.group.calls = []

    def groupEnd(self) -> None:
        calls, self.group.calls = self.group.calls, None
        for call in calls:
            call()
