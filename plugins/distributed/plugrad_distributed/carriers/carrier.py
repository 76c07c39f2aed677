"""Carrier: moves arrays between the ranks of a group. A package that provides one derives from this
class. Sending and receiving are enough: collectives use these by default, and a carrier overrides
those that it can do better.

Carriers get contiguous NumPy arrays, or arrays of a device that the carrier names in `devices`. An
operation starts at once and returns a `Request`, or None if it is already complete. The caller
keeps the arrays alive until then.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from plugrad_distributed.errors import DistBackendError
from plugrad_distributed.reduce_op import ReduceOp

__all__ = ["ANY_SOURCE", "COLLECTIVE_TAG", "Carrier", "Request", "Requests", "Summing"]

ANY_SOURCE = -1
# Collectives built from sends use tags from here on; users' tags are below.
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


class Summing(Protocol):
    """What `Carrier.summing` needs of its group.

    Attributes:
        last: the latest operation; for a sum its dtype and shape.
    """

    last: object

    def wait_for_sum(self, array: Array, request: Request) -> None:
        """Wait until a sum is complete."""

    def failed_sum(self, array: Array, error: DistBackendError) -> DistBackendError:
        """The user's error for a sum that the carrier could not complete."""


class Request:
    """An operation in progress.

    Attributes:
        source: the rank that a received message came from; -1 before it arrives, and for other
            operations.
    """

    source: int = -1
    # Whether it progresses only while it is polled: then a thread polls work that is not waited for
    # yet.
    needs_asking: bool = False
    # Whether there are more ranks than cores, so that ranks that poll slow the others down.
    crowded: bool = False
    # Whether it completes in the order of a device's stream: then waiting calls `follow` instead of
    # `test`.
    follows: bool = False

    def test(self) -> bool:
        """Whether it is complete. Never waits. Call it until it returns True.

        Raises:
            DistBackendError: it failed.
        """
        raise NotImplementedError

    def spin(self, limit: float) -> bool:
        """Call `test` in a loop without pauses, for at most this many seconds; returns whether it
        is complete.

        Raises:
            DistBackendError: it failed.
        """
        end = time.monotonic() + limit
        while not self.test():
            if time.monotonic() > end:
                return False
        return True

    def follow(self) -> None:
        """Make later work of the calling thread on the device run after this operation. Never
        waits.

        Raises:
            DistBackendError: it failed.
        """
        raise NotImplementedError


class Requests(Request):
    """Several requests as one, with a function to call when all are complete."""

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

    A carrier must define `split`, `send` and `recv`. Roots and peers are numbers in the group.

    >>> import queue
    >>> import numpy as np
    >>> from plugrad.distributed import Carrier
    >>> class Mailboxes(Carrier):
    ...     # The ranks are in one process; each has a queue.
    ...     def __init__(self, rank, boxes):
    ...         super().__init__(rank, len(boxes))
    ...         self.boxes = boxes
    ...     def split(self, ranks, name):
    ...         raise NotImplementedError("no smaller groups in this example")
    ...     def send(self, array, dst, tag):
    ...         self.boxes[dst].put(array.copy())
    ...     def recv(self, out, src, tag):
    ...         out[...] = self.boxes[self.rank].get()
    >>> boxes = [queue.Queue(), queue.Queue()]
    >>> first, second = Mailboxes(0, boxes), Mailboxes(1, boxes)
    >>> _ = first.broadcast(np.array([1.0, 2.0]), root=0)
    >>> received = np.empty(2)
    >>> second.broadcast(received, root=0)
    >>> received
    array([1., 2.])
    """

    # Device types of the arrays that it accepts. Arrays of other devices are copied through the
    # host.
    devices: frozenset[str] = frozenset({"cpu"})
    name: ClassVar[str] = ""
    # Whether `world` starts MPI. If MPI's programs did not start the processes, they meet first, so
    # that MPI can connect them.
    starts_mpi: ClassVar[bool] = False

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        self._calls = 0
        # Set by its group: how long `split` may wait; and a function that returns the operation
        # that the group waits for, or nothing, and the last one that it started.
        self.timeout = 1800.0
        self.state: Callable[[], tuple[str, str]] = lambda: ("", "")

    @classmethod
    def world(cls, rank: int, size: int, options: Any = None, timeout: float = 1800.0) -> Carrier:
        """The carrier of all processes. `rank` and `size` are -1 if the program leaves them to the
        carrier, as under mpiexec. Processes must find each other within `timeout` seconds.

        Raises:
            ValueError: the carrier has another rank or size.
            DistTimeoutError: a process did not arrive.
        """
        raise NotImplementedError

    def split(self, ranks: Sequence[int], name: str) -> Carrier:
        """The carrier of a group of some of these ranks, in this order. Exactly these ranks call
        it. `name` is the same for all and unique among current groups."""
        raise NotImplementedError

    def close(self) -> None:
        """Release the carrier's resources. No method is called afterwards."""

    def check_others(self) -> None:
        """Raise if the carrier has detected that a rank of the group has ended.

        Raises:
            DistBackendError: it is.
        """

    def report(self, problem: str) -> None:
        """Tell the other ranks that this process ends with an error."""

    def batch(self) -> contextlib.AbstractContextManager[None]:
        """A block of sends and receives that may start together at its end."""
        return contextlib.nullcontext()

    def missing(self, what: str) -> str:
        """Details about other ranks after an operation timed out, such as "rank 2 has not
        answered"; may be empty. `what` names the operation for the others."""
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
        """Complete once every rank has called it."""
        return self.all_gather(np.empty(self.size, np.uint8), np.zeros(1, np.uint8))

    def broadcast(self, array: Array, root: int) -> Request | None:
        """Write the root's array to every rank's."""
        tag = self._tag()
        if self.rank != root:
            return self.recv(array, root, tag)
        return Requests([self.send(array, peer, tag) for peer in self._others()])

    def all_gather(self, out: Array, array: Array) -> Request | None:
        """Write the arrays of all ranks to the rows of `out`, of shape (size, ...)."""
        return self.all_to_all(
            out, np.broadcast_to(array.reshape(1, -1), (self.size, array.size)), None, None
        )

    def gather(self, out: Array | None, array: Array, root: int) -> Request | None:
        """`all_gather` on the root only; other ranks pass None for `out`."""
        tag = self._tag()
        if self.rank != root:
            return self.send(array, root, tag)
        assert out is not None
        rows = out.reshape(self.size, -1)
        rows[root] = array.reshape(-1)
        return Requests([self.recv(rows[peer], peer, tag) for peer in self._others()])

    def scatter(self, out: Array, array: Array | None, root: int) -> Request | None:
        """Write row r of the root's array, of shape (size, ...), to `out` of rank r; other ranks
        pass None for `array`."""
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
        """Send part r of `array` to rank r, and write the part from rank r to part r of `out`.
        Counts are the parts' numbers of elements; None means equal parts."""
        tag = self._tag()
        receives = _parts(out, out_counts, self.size)
        sends = _parts(array, in_counts, self.size)
        receives[self.rank][:] = sends[self.rank]
        requests = [self.recv(receives[p], p, tag) for p in self._others() if receives[p].size]
        requests += [self.send(sends[p], p, tag) for p in self._others() if sends[p].size]
        return Requests(requests)

    def all_reduce(self, out: Array, array: Array, op: ReduceOp) -> Request | None:
        """Reduce the elements of all ranks by `op`, and write the result to `out`, which may be
        `array`. `op` is never AVG."""
        rows = np.empty((self.size, array.size), array.dtype)

        def finish() -> None:
            _UFUNCS[op].reduce(rows, axis=0, out=out.reshape(-1), dtype=out.dtype)

        return Requests([self.all_gather(rows, array)], finish)

    def summing(self, group: Summing) -> Callable[[Array], None]:
        """A function for the most common form of `all_reduce`, a sum in place that is waited for
        at once. It is one function, because the time of small sums shows each that they enter."""

        def sum_now(array: Array) -> None:
            group.last = (array.dtype, array.shape)
            try:
                request = self.all_reduce(array, array, ReduceOp.SUM)
            except DistBackendError as error:
                raise group.failed_sum(array, error) from error.__cause__
            if request is not None:
                group.wait_for_sum(array, request)

        return sum_now

    def reduce(self, out: Array, array: Array, root: int, op: ReduceOp) -> Request | None:
        """`all_reduce` on the root only; `out` of other ranks does not change."""
        if self.rank != root:
            return self.gather(None, array, root)
        rows = np.empty((self.size, array.size), array.dtype)

        def finish() -> None:
            _UFUNCS[op].reduce(rows, axis=0, out=out.reshape(-1), dtype=out.dtype)

        return Requests([self.gather(rows, array, root)], finish)

    def reduce_scatter(self, out: Array, array: Array, op: ReduceOp) -> Request | None:
        """Reduce the arrays of all ranks, of shape (size, ...), by `op`, and write row r of the
        result to `out` of rank r."""
        rows = np.empty((self.size, out.size), array.dtype)

        def finish() -> None:
            _UFUNCS[op].reduce(rows, axis=0, out=out.reshape(-1), dtype=out.dtype)

        return Requests([self.all_to_all(rows, array, None, None)], finish)

    def _others(self) -> list[int]:
        """The other ranks, beginning with the next, so that ranks do not all send to the same one
        first."""
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
