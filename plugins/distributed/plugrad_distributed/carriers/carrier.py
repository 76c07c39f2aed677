"""Carrier: what moves arrays between the ranks of a group. A package that brings one derives from
this class; sending and receiving are enough, since every collective is made of these unless the
carrier has a better way.

Arrays that carriers get are NumPy's, contiguous, or those of a device that the carrier names in
`devices`. An operation starts at once and returns a `Request`, or None if it is over already. Who
asked keeps the arrays alive until then.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from plugrad_distributed.reduce_op import ReduceOp

__all__ = ["ANY_SOURCE", "COLLECTIVE_TAG", "Carrier", "Request", "Requests"]

ANY_SOURCE = -1
# Messages of collectives that are made of sends have tags from here on; users' are below.
COLLECTIVE_TAG = 1 << 24

Array = NDArray[Any]

_UFUNCS: dict[ReduceOp, np.ufunc] = {
    ReduceOp.SUM: np.add,
    ReduceOp.PRODUCT: np.multiply,
    ReduceOp.MIN: np.minimum,
    ReduceOp.MAX: np.maximum,
    ReduceOp.BAND: np.bitwise_and,
    ReduceOp.BOR: np.bitwise_or,
    ReduceOp.BXOR: np.bitwise_xor,
}


class Request:
    """An operation that was started.

    Attributes:
        source: the rank that a received message came from; -1 before, and for other operations.
    """

    source: int = -1
    # Whether it goes on only while it is asked: a thread asks for work that nobody waits for yet.
    needs_asking: bool = False
    # Whether ranks that wait keep the cores from others, as there are more ranks than cores.
    crowded: bool = False
    # Whether its end is in the order of a device: who waits for it calls `follow`, and not `test`.
    follows: bool = False

    def test(self) -> bool:
        """Whether it is over. Never waits. Must be asked until it says so.

        Raises:
            DistBackendError: it failed.
        """
        raise NotImplementedError

    def spin(self, limit: float) -> bool:
        """`test` again and again without a pause, for so many seconds at most; whether it is over.

        Raises:
            DistBackendError: it failed.
        """
        end = time.monotonic() + limit
        while not self.test():
            if time.monotonic() > end:
                return False
        return True

    def follow(self) -> None:
        """Have what the calling thread gives the device from now on come after it. Never waits.

        Raises:
            DistBackendError: it failed.
        """
        raise NotImplementedError


class Requests(Request):
    """Several requests as one, and what is to be done when all of them are over."""

    def __init__(
        self, parts: Sequence[Request | None], finish: Callable[[], None] | None = None
    ) -> None:
        self._parts = [part for part in parts if part is not None]
        self._finish = finish
        self.needs_asking = any(part.needs_asking for part in self._parts)
        self.crowded = any(part.crowded for part in self._parts)

    def test(self) -> bool:
        self._parts = [part for part in self._parts if not part.test()]
        if self._parts:
            return False
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()
        return True


class Carrier:
    """Moves arrays between the ranks 0 to `size` - 1 of one group, of which this process is `rank`.

    A carrier must define `split`, `send` and `recv`. Roots and peers are ranks in the group.
    """

    # Types of the devices whose arrays it takes. Those of other devices pass through the host.
    devices: frozenset[str] = frozenset({"cpu"})
    name: ClassVar[str] = ""
    # Whether `world` starts MPI. Then processes that no program of MPI started meet before, so that
    # it finds itself among them.
    starts_mpi: ClassVar[bool] = False

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self._calls = 0
        # Its group sets both: how long `split` may wait, and what says where the group is, as a
        # pair of the operation that it waits for, or nothing, and the last one that it started.
        self.timeout = 1800.0
        self.state: Callable[[], tuple[str, str]] = lambda: ("", "")

    @classmethod
    def world(cls, rank: int, size: int, options: Any = None, timeout: float = 1800.0) -> Carrier:
        """The carrier of all processes. `rank` and `size` are -1 where the program leaves them to
        the carrier, as programs under mpiexec do. Processes find each other within `timeout`
        seconds.

        Raises:
            ValueError: the carrier knows that rank or size are others.
            DistTimeoutError: a process did not come.
        """
        raise NotImplementedError

    def split(self, ranks: Sequence[int], name: str) -> Carrier:
        """The carrier of a group of some of these ranks, in this order; each of them calls this,
        the others do not. `name` is the same for all and no other group's at the time."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what the carrier holds. Nothing is called afterwards."""

    def check_others(self) -> None:
        """Raise if a rank of the group is gone, as far as the carrier knows.

        Raises:
            DistBackendError: it is.
        """

    def report(self, problem: str) -> None:
        """This process ends with a problem: tell the other ranks."""

    def batch(self) -> contextlib.AbstractContextManager[None]:
        """Within it, messages are asked for that may start together at its end."""
        return contextlib.nullcontext()

    def missing(self, what: str) -> str:
        """What can be said of other ranks once an operation did not end in time, such as "rank 2
        has not answered"; empty for nothing. `what` names the operation for the others."""
        return ""

    def send(self, array: Array, dst: int, tag: int) -> Request | None:
        """Send an array to a rank, which receives it with the same tag."""
        raise NotImplementedError

    def recv(self, out: Array, src: int, tag: int) -> Request | None:
        """Receive an array of the size and dtype of `out`; `src` may be ANY_SOURCE."""
        raise NotImplementedError

    # Collectives: all ranks call the same ones in the same order.

    def _tag(self) -> int:
        self._calls += 1
        return COLLECTIVE_TAG + self._calls % COLLECTIVE_TAG

    def barrier(self) -> Request | None:
        """Over once every rank has called it."""
        return self.all_gather(np.empty(self.size, np.uint8), np.zeros(1, np.uint8))

    def broadcast(self, array: Array, root: int) -> Request | None:
        """Write the root's array to that of every rank."""
        tag = self._tag()
        if self.rank != root:
            return self.recv(array, root, tag)
        return Requests([self.send(array, peer, tag) for peer in self._others()])

    def all_gather(self, out: Array, array: Array) -> Request | None:
        """Write the arrays of all ranks, one behind the other, to `out`, of shape (size, ...)."""
        return self.all_to_all(
            out, np.broadcast_to(array.reshape(1, -1), (self.size, array.size)), None, None
        )

    def gather(self, out: Array | None, array: Array, root: int) -> Request | None:
        """`all_gather` for the root alone; the others give None for `out`."""
        tag = self._tag()
        if self.rank != root:
            return self.send(array, root, tag)
        assert out is not None
        rows = out.reshape(self.size, -1)
        rows[root] = array.reshape(-1)
        return Requests([self.recv(rows[peer], peer, tag) for peer in self._others()])

    def scatter(self, out: Array, array: Array | None, root: int) -> Request | None:
        """Write row r of the root's array, of shape (size, ...), to `out` of rank r; the others
        give None for `array`."""
        tag = self._tag()
        if self.rank != root:
            return self.recv(out, root, tag)
        assert array is not None
        rows = array.reshape(self.size, -1)
        out.reshape(-1)[:] = rows[root]
        return Requests([self.send(rows[peer], peer, tag) for peer in self._others()])

    def all_to_all(
        self,
        out: Array,
        array: Array,
        out_counts: Sequence[int] | None,
        in_counts: Sequence[int] | None,
    ) -> Request | None:
        """Send part r of `array` to rank r, and write what rank r sends to part r of `out`. Counts
        are the parts' numbers of elements; None means that all have the same."""
        tag = self._tag()
        receives = _parts(out, out_counts, self.size)
        sends = _parts(array, in_counts, self.size)
        receives[self.rank][:] = sends[self.rank]
        requests = [self.recv(receives[p], p, tag) for p in self._others() if receives[p].size]
        requests += [self.send(sends[p], p, tag) for p in self._others() if sends[p].size]
        return Requests(requests)

    def all_reduce(self, out: Array, array: Array, op: ReduceOp) -> Request | None:
        """Write the elements of all ranks, put together by `op`, to `out`, which may be `array`.
        `op` is never AVG."""
        rows = np.empty((self.size, array.size), array.dtype)

        def finish() -> None:
            _UFUNCS[op].reduce(rows, axis=0, out=out.reshape(-1), dtype=out.dtype)

        return Requests([self.all_gather(rows, array)], finish)

    def sum_in_place(self, array: Array) -> Request | None:
        """`all_reduce` as it is called most and waited for at once: a carrier may take the time
        that a small sum needs, and return None."""
        return self.all_reduce(array, array, ReduceOp.SUM)

    def reduce(self, out: Array, array: Array, root: int, op: ReduceOp) -> Request | None:
        """`all_reduce` for the root alone; `out` of other ranks is not written to."""
        if self.rank != root:
            return self.gather(None, array, root)
        rows = np.empty((self.size, array.size), array.dtype)

        def finish() -> None:
            _UFUNCS[op].reduce(rows, axis=0, out=out.reshape(-1), dtype=out.dtype)

        return Requests([self.gather(rows, array, root)], finish)

    def reduce_scatter(self, out: Array, array: Array, op: ReduceOp) -> Request | None:
        """Put the arrays of all ranks, of shape (size, ...), together by `op`, and write row r of
        the result to `out` of rank r."""
        rows = np.empty((self.size, out.size), array.dtype)

        def finish() -> None:
            _UFUNCS[op].reduce(rows, axis=0, out=out.reshape(-1), dtype=out.dtype)

        return Requests([self.all_to_all(rows, array, None, None)], finish)

    def _others(self) -> list[int]:
        """The other ranks, beginning with the next: so not all send to the same one at first."""
        return [(self.rank + step) % self.size for step in range(1, self.size)]


def _parts(array: Array, counts: Sequence[int] | None, size: int) -> list[Array]:
    if counts is None:
        return list(array.reshape(size, -1))
    flat = array.reshape(-1)
    found, start = [], 0
    for count in counts:
        found.append(flat[start : start + count])
        start += count
    return found
