"""The carrier between GPUs: NCCL, on the arrays' own memory and in the order of streams. Host
arrays use the carrier of hosts, MPI, which also reports failures of other ranks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from plugrad_cuda import library
from plugrad_cuda.collectives import nccl
from plugrad_cuda.collectives.communicators import Communicators
from plugrad_cuda.collectives.requests import Enqueued, Stopped
from plugrad_cuda.collectives.watching import end_process, watch
from plugrad_cuda.memory import lent
from plugrad_cuda.streams import Event, Stream, current_of
from plugrad_cuda.streams import stream as use
from plugrad_distributed.carriers.alone import AloneCarrier
from plugrad_distributed.carriers.carrier import ANY_SOURCE, Carrier, Request, Requests
from plugrad_distributed.carriers.registry import carrier_class
from plugrad_distributed.errors import DistBackendError
from plugrad_distributed.reduce_op import ReduceOp

__all__ = ["NCCLCarrier"]

# Code that checks whether NCCL is available imports this module.
nccl.module()

Array = Any
# A message: its request, the array, the other rank, and whether it is sent.
Message = tuple[Enqueued, Array, int, bool]

_REDUCTIONS = {
    ReduceOp.SUM: "add",
    ReduceOp.PRODUCT: "multiply",
    ReduceOp.MIN: "minimum",
    ReduceOp.MAX: "maximum",
    ReduceOp.BAND: "bitwise_and",
    ReduceOp.BOR: "bitwise_or",
    ReduceOp.BXOR: "bitwise_xor",
}


class NCCLCarrier(Carrier):
    """Ranks that are processes, each with a GPU of its own.

    An operation goes to one of the carrier's streams, after the work on the calling thread's stream
    so far. Waiting for a request makes the stream wait, not the host; with
    `PLUGRAD_NCCL_BLOCKING_WAIT=1` in the environment the host waits, too.

    Attributes:
        host: the carrier of hosts.
        blocking: whether the host waits.
        closed: whether it has been closed.
        problem: why it cannot be used any more; empty while it can.
    """

    name: ClassVar[str] = "nccl"
    devices: frozenset[str] = frozenset({"cpu", "cuda"})
    starts_mpi: ClassVar[bool] = True

    def __init__(self, host: Carrier) -> None:
        self.host = host
        super().__init__(host.rank, host.size)
        self.blocking = os.environ.get("PLUGRAD_NCCL_BLOCKING_WAIT", "0") not in ("", "0")
        self.closed = False
        self._communicators = Communicators(host, self.check_others)
        self._streams: dict[tuple[int, str], Stream] = {}
        self._batch: list[Message] | None = None
        self.problem = ""
        # Messages of a group of one rank.
        self._alone = AloneCarrier()

    @classmethod
    def world(cls, rank: int, size: int, options: Any = None, timeout: float = 1800.0) -> Carrier:
        """All processes; `options` may be the carrier of hosts, if that is not MPI."""
        library.require()
        if isinstance(options, Carrier):
            return cls(options)
        name = "alone" if size == 1 else "mpi"
        return cls(carrier_class(name).world(rank, size, None, timeout))

    def split(self, ranks: Sequence[int], name: str) -> Carrier:
        return NCCLCarrier(self.host.split(ranks, name))

    # The group's settings apply to the host's carrier, too, which reports this rank's state to
    # others.

    @property
    def timeout(self) -> float:
        return self.host.timeout

    @timeout.setter
    def timeout(self, limit: float) -> None:
        self.host.timeout = limit

    @property
    def state(self) -> Callable[[], tuple[str, str]]:
        return self.host.state

    @state.setter
    def state(self, state: Callable[[], tuple[str, str]]) -> None:
        self.host.state = state

    # How it ends

    def close(self) -> None:
        with contextlib.suppress(DistBackendError):
            self.check_others()
        self.closed = True
        if not self.problem:
            for stream in self._streams.values():
                stream.synchronize()
            self._communicators.let_go("destroy")
        self.host.close()

    def check_others(self) -> None:
        """Raise if the carrier failed, or a rank of the group has ended."""
        if self.problem:
            raise DistBackendError(self.problem)
        try:
            self.host.check_others()
        except DistBackendError as error:
            self._abort(str(error))
            raise

    def missing(self, what: str) -> str:
        told = self.host.missing(what)
        self._abort(told or f"{what} did not end in time")
        return told

    def fail(self, problem: str) -> None:
        """End the process, because an operation that no thread waits for has failed."""
        self._abort(problem)
        self.host.report(problem)
        end_process(problem)

    def _abort(self, problem: str) -> None:
        """Abort running operations on the GPU, which would wait for other ranks forever."""
        if not self.problem:
            self.problem = problem
            self._communicators.let_go("abort")

    # How it starts

    def _is_of_host(self, array: Array) -> bool:
        return not hasattr(array, "__cuda_array_interface__")

    def _stream(self, index: int, kind: str) -> Stream:
        found = self._streams.get((index, kind))
        if found is None:
            found = self._streams[index, kind] = Stream(index, priority=-1)
        return found

    def _run(
        self, arrays: Sequence[Array], kind: str, call: Callable[[int], None], index: int
    ) -> Event:
        """Give a stream something to do, after what the thread's own stream was given so far."""
        with library.cupy().cuda.Device(index):
            stream = self._stream(index, kind)
            stream.wait_stream(current_of(index))
            try:
                with use(stream):
                    call(stream.cuda_stream)
            except RuntimeError as error:
                problem = f"NCCL: {error}"
                self._abort(problem)
                raise DistBackendError(problem) from error
            done = stream.record_event()
        for array in arrays:
            lent.lend(array.data.mem, stream)
        return done

    def _start(self, arrays: Sequence[Array], call: Callable[[Any, int], None]) -> Request | None:
        """Start a collective; `call` gets the communicator and the handle of the stream."""
        if not arrays[0].size:
            return None
        self.check_others()
        index = arrays[0].device.id
        communicator = self._communicators.of_all(index)
        done = self._run(arrays, "all", lambda stream: call(communicator, stream), index)
        return self._watched(Enqueued(self, index, done))

    def _watched(self, request: Enqueued) -> Enqueued:
        if request.follows:
            watch.add(self, request)
        return request

    # Messages

    def send(self, array: Array, dst: int, tag: int) -> Request | None:
        """Send to a rank. NCCL has no tags: messages arrive in the order in which they are sent."""
        if self._is_of_host(array):
            return self.host.send(array, dst, tag)
        if dst == self.rank:
            return self._alone.send(array, 0, tag)
        return self._message(array, dst, True)

    def recv(self, out: Array, src: int, tag: int) -> Request | None:
        if self._is_of_host(out):
            return self.host.recv(out, src, tag)
        if src == ANY_SOURCE and self.size > 1:
            raise ValueError("recv(): src must be given: NCCL cannot receive from any rank")
        if self.size == 1:
            return self._alone.recv(out, 0, tag)
        return self._message(out, src, False)

    def _message(self, array: Array, peer: int, sent: bool) -> Request | None:
        if not array.size:
            return None
        request = Enqueued(self, array.device.id, None, -1 if sent else peer)
        message = (request, array, peer, sent)
        if self._batch is None:
            self._exchange([message], "sent" if sent else "received")
        else:
            self._batch.append(message)
        return request

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Messages that are requested within it start together at its end."""
        self._batch = []
        try:
            yield
            messages, self._batch = self._batch, None
            if messages:
                self._exchange(messages, "batch")
        finally:
            self._batch = None

    def _exchange(self, messages: Sequence[Message], kind: str) -> None:
        """Give messages to the GPU as one."""
        self.check_others()
        index = messages[0][0].index
        # In one order on all ranks, since the first message of two ranks has both wait.
        peers = sorted({peer for _, _, peer, _ in messages}, key=self._pair)
        pairs = {peer: self._communicators.of_pair(index, peer) for peer in peers}

        def call(stream: int) -> None:
            with _grouped():
                for _, array, peer, sent in messages:
                    # The sender is rank 0 of a communicator of two.
                    if sent:
                        pairs[peer][0].send(*_bytes(array), 1, stream)
                    else:
                        pairs[peer][1].recv(*_bytes(array), 0, stream)

        done = self._run([array for _, array, _, _ in messages], kind, call, index)
        for request, *_ in messages:
            request.done = done
        self._watched(messages[0][0])

    def _pair(self, peer: int) -> tuple[int, int]:
        return min(self.rank, peer), max(self.rank, peer)

    # Collectives

    def barrier(self) -> Request | None:
        """Wait for the other ranks, and for this rank's earlier work on its GPU."""
        marks = [stream.record_event() for stream in self._streams.values()]
        return Requests([Stopped(self, marks), self.host.barrier()])

    def broadcast(self, array: Array, root: int) -> Request | None:
        if self._is_of_host(array):
            return self.host.broadcast(array, root)
        pointer, count, kind = _bytes(array)
        return self._start(
            [array],
            lambda comm, stream: comm.broadcast(pointer, pointer, count, kind, root, stream),
        )

    def all_gather(self, out: Array, array: Array) -> Request | None:
        if self._is_of_host(array):
            return self.host.all_gather(out, array)
        pointer, count, kind = _bytes(array)
        into = _bytes(out)[0]
        return self._start(
            [array, out], lambda comm, stream: comm.allGather(pointer, into, count, kind, stream)
        )

    def gather(self, out: Array | None, array: Array, root: int) -> Request | None:
        if self._is_of_host(array):
            return self.host.gather(out, array, root)
        received = [] if self.rank != root else list(_flat(out).reshape(self.size, -1))
        return self._move([(array, root)], list(enumerate(received)))

    def scatter(self, out: Array, array: Array | None, root: int) -> Request | None:
        if self._is_of_host(out):
            return self.host.scatter(out, array, root)
        rows = [] if self.rank != root else _flat(array).reshape(self.size, -1)
        return self._move([(row, rank) for rank, row in enumerate(rows)], [(root, out)])

    def all_to_all(
        self,
        out: Array,
        array: Array,
        out_counts: Sequence[int] | None,
        in_counts: Sequence[int] | None,
    ) -> Request | None:
        if self._is_of_host(array):
            return self.host.all_to_all(out, array, out_counts, in_counts)
        sent = _parts(array, in_counts, self.size)
        received = _parts(out, out_counts, self.size)
        return self._move([(part, r) for r, part in enumerate(sent)], list(enumerate(received)))

    def _move(
        self, sent: Sequence[tuple[Array, int]], received: Sequence[tuple[int, Array]]
    ) -> Request | None:
        """Messages among all ranks, in which all of them participate."""
        outgoing = [(part, rank) for part, rank in sent if part.size]
        incoming = [(rank, part) for rank, part in received if part.size]
        arrays = [part for part, _ in outgoing] + [part for _, part in incoming]
        if not arrays:
            return None

        def call(comm: Any, stream: int) -> None:
            with _grouped():
                for part, rank in outgoing:
                    comm.send(*_bytes(part), rank, stream)
                for rank, part in incoming:
                    comm.recv(*_bytes(part), rank, stream)

        return self._start(arrays, call)

    def all_reduce(self, out: Array, array: Array, op: ReduceOp) -> Request | None:
        if self._is_of_host(array):
            return self.host.all_reduce(out, array, op)
        known = nccl.reduction(op, array.dtype)
        if known is None:
            return self._gathered(out, array, op)
        return self._reduced("allReduce", out, array, array.size, known)

    def reduce(self, out: Array, array: Array, root: int, op: ReduceOp) -> Request | None:
        if self._is_of_host(array):
            return self.host.reduce(out, array, root, op)
        known = nccl.reduction(op, array.dtype)
        if known is None:
            return self._gathered(out if self.rank == root else None, array, op)
        return self._reduced("reduce", out, array, array.size, known, root)

    def reduce_scatter(self, out: Array, array: Array, op: ReduceOp) -> Request | None:
        if self._is_of_host(array):
            return self.host.reduce_scatter(out, array, op)
        known = nccl.reduction(op, array.dtype)
        if known is None:
            return self._exchanged(out, array, op)
        return self._reduced("reduceScatter", out, array, out.size, known)

    def _reduced(
        self, name: str, out: Array, array: Array, size: int, known: Any, *more: int
    ) -> Request | None:
        """Call a reduction of NCCL's on `size` elements; `known` is the result of
        `nccl.reduction`."""
        kind, named, parts = known
        pointer, into = _bytes(array)[0], _bytes(out)[0]

        def call(comm: Any, stream: int) -> None:
            getattr(comm, name)(pointer, into, size * parts, kind, named, *more, stream)

        return self._start([array, out], call)

    # What NCCL has no reduction for, such as bits of integers: each rank computes it.

    def _gathered(self, out: Array | None, array: Array, op: ReduceOp) -> Request | None:
        pointer, count, kind = _bytes(array)

        def call(comm: Any, stream: int) -> None:
            rows = library.cupy().empty((self.size, array.size), array.dtype)
            comm.allGather(pointer, _bytes(rows)[0], count, kind, stream)
            if out is not None:
                _combine(rows, op, out)

        return self._start([array] if out is None else [array, out], call)

    def _exchanged(self, out: Array, array: Array, op: ReduceOp) -> Request | None:
        parts = _flat(array).reshape(self.size, -1)

        def call(comm: Any, stream: int) -> None:
            rows = library.cupy().empty(parts.shape, parts.dtype)
            with _grouped():
                for rank in range(self.size):
                    comm.send(*_bytes(parts[rank]), rank, stream)
                    comm.recv(*_bytes(rows[rank]), rank, stream)
            _combine(rows, op, out)

        return self._start([array, out], call)


def _combine(rows: Array, op: ReduceOp, out: Array) -> None:
    combine = getattr(library.cupy(), _REDUCTIONS[op])
    found = rows[0]
    for row in rows[1:]:
        found = combine(found, row)
    _flat(out)[...] = found


@contextlib.contextmanager
def _grouped() -> Iterator[None]:
    """NCCL's calls within it start together."""
    found = nccl.module()
    found.groupStart()
    try:
        yield
    finally:
        found.groupEnd()


def _bytes(array: Array) -> tuple[int, int, int]:
    """Pointer, count and NCCL's dtype of an array as bytes."""
    return array.data.ptr, array.nbytes, getattr(nccl.module(), nccl.BYTES)


def _flat(array: Array) -> Array:
    return array.reshape(-1)


def _parts(array: Array, counts: Sequence[int] | None, size: int) -> list[Array]:
    flat = _flat(array)
    if counts is None:
        return list(flat.reshape(size, -1))
    found, start = [], 0
    for count in counts:
        found.append(flat[start : start + count])
        start += count
    return found
