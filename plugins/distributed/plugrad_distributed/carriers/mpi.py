"""The carrier between processes: MPI through mpi4py, in place in the arrays' memory."""

from __future__ import annotations

import sys
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

try:
    import mpi4py
except ImportError as error:
    raise ImportError(
        "collectives by MPI need mpi4py and an MPI library: pip install 'plugrad-distributed[mpi]'"
    ) from error

from plugrad_distributed.arrays import empty_like
from plugrad_distributed.carriers.carrier import ANY_SOURCE, Array, Carrier, Request, Summing
from plugrad_distributed.carriers.cuda_aware import AfterStreams, is_cuda_aware
from plugrad_distributed.carriers.ending import end_with
from plugrad_distributed.carriers.monitor import Monitor
from plugrad_distributed.carriers.mpi_types import as_moved, as_reduced, reduction, types_of_sums
from plugrad_distributed.carriers.placement import (
    forget_shared_memory,
    is_crowded,
    tell_environment,
)
from plugrad_distributed.errors import DistBackendError, DistTimeoutError
from plugrad_distributed.launching.watching import init_mpi, is_watched, started
from plugrad_distributed.reduce_op import ReduceOp

__all__ = ["MPICarrier"]

# How often to poll an operation before checking the clock and the other ranks.
ONCE = range(1)
AT_ONCE = range(64)
# How many seconds to wait for the report that a rank has ended after MPI failed without a reason:
# MPI may notice an ended process before the monitor does.
NEWS = 5.0
# Errors caused by the call itself.
OF_CALLERS = (
    *("ERR_ARG", "ERR_BUFFER", "ERR_COMM", "ERR_COUNT", "ERR_GROUP", "ERR_OP", "ERR_RANK"),
    *("ERR_ROOT", "ERR_TAG", "ERR_TRUNCATE", "ERR_TYPE"),
)
# Messages with which the members of a new group meet have tags above all others.
MEETING_TAG = 1 << 27


def _load() -> Any:
    """mpi4py's module; its first import starts MPI.

    Raises:
        ImportError: there is no MPI library.
        RuntimeError: MPI allows no calls by several threads.
    """
    if "mpi4py.MPI" not in sys.modules:
        # Whether MPI can be finalized is known only at exit: see `ending`.
        mpi4py.rc.finalize = False
        mpi4py.rc.thread_level = "multiple"
        mpi4py.rc.initialize = not is_watched()
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            f"mpi4py finds no MPI library ({error}): pip install 'plugrad-distributed[mpi]', or "
            "load the cluster's MPI"
        ) from error
    if not MPI.Is_initialized():
        if is_watched():
            init_mpi(MPI)
        else:
            MPI.Init_thread(MPI.THREAD_MULTIPLE)
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise RuntimeError(
            "init_process_group(): MPI must allow calls by several threads "
            "(MPI_THREAD_MULTIPLE): let plugrad start MPI, or set mpi4py.rc.thread_level"
        )
    return MPI


class _Pending(Request):
    """An operation that MPI runs. mpi4py's request keeps the buffers alive."""

    __slots__ = ("_carrier", "_request", "_status", "crowded", "source")
    needs_asking = True

    def __init__(self, carrier: MPICarrier, request: Any, status: Any = None) -> None:
        self._carrier = carrier
        self._request = request
        self._status = status
        self.source = -1
        self.crowded = carrier.crowded

    def test(self) -> bool:
        return self._asked(ONCE)

    def spin(self, limit: float) -> bool:
        end = time.monotonic() + limit
        while not self._asked(AT_ONCE):
            if time.monotonic() > end:
                return False
        return True

    def _asked(self, times: range) -> bool:
        """Poll MPI at most this many times; returns whether it is complete."""
        carrier = self._carrier
        test, status = self._request.Test, self._status
        try:
            for _ in times:
                if test(status):
                    self._end()
                    return True
        except carrier.mpi.Exception as error:
            raise carrier.failure(error) from error
        if carrier.monitor.alarmed:
            carrier.check_others()
        return False

    def _end(self) -> None:
        """MPI is done."""


class _Received(_Pending):
    """A received message; MPI reports its sender afterwards."""

    __slots__ = ()

    def _end(self) -> None:
        self.source = self._status.source


class _Reduced(_Pending):
    """A reduction that runs in another dtype."""

    __slots__ = ("_result", "_to")

    def __init__(self, carrier: MPICarrier, request: Any, result: Array, to: Array) -> None:
        super().__init__(carrier, request)
        self._result = result
        self._to = to

    def _end(self) -> None:
        self._to.reshape(-1)[:] = self._result.reshape(-1).astype(self._to.dtype)


class MPICarrier(Carrier):
    """Ranks that are processes started by `mpiexec`, `srun` or `plugrad launch`.

    Attributes:
        mpi: the module `mpi4py.MPI`.
        monitor: reports the state of other ranks.
    """

    name: ClassVar[str] = "mpi"
    starts_mpi: ClassVar[bool] = True

    def __init__(
        self,
        mpi: Any,
        comm: Any,
        monitor: Monitor,
        ranks: Sequence[int],
        name: str,
        crowded: bool = False,
    ) -> None:
        super().__init__(comm.Get_rank(), comm.Get_size())
        self.crowded = crowded
        self.mpi = mpi
        self.comm = comm
        if is_cuda_aware(mpi):
            self.devices = frozenset({"cpu", "cuda"})
            self.comm = AfterStreams(comm)
        self.monitor = monitor
        self._ranks = tuple(ranks)
        self._name = name
        self._in_place = mpi.IN_PLACE
        self._any = mpi.ANY_SOURCE
        self._of_callers = frozenset(getattr(mpi, name) for name in OF_CALLERS)
        monitor.watch(name, self)

    @classmethod
    def world(
        cls, rank: int, size: int, options: Any = None, timeout: float = 1800.0
    ) -> MPICarrier:
        return started(lambda: cls._among_all(rank, size, timeout))

    @classmethod
    def _among_all(cls, rank: int, size: int, timeout: float) -> MPICarrier:
        mpi = _load()
        whole = mpi.COMM_WORLD
        _check_placed(rank, size, whole.Get_rank(), whole.Get_size())
        comm, request = whole.Idup()
        _poll(request.Test, timeout, f"init_process_group() on rank {whole.Get_rank()}")
        tell_environment(comm)
        forget_shared_memory()
        crowded = is_crowded(comm, mpi.Get_processor_name())
        ended = end_with.monitor
        monitor = Monitor.start(comm, timeout) if ended is None else ended
        end_with.begin(mpi, monitor, timeout)
        return cls(mpi, comm, monitor, range(comm.Get_size()), "world", crowded)

    def split(self, ranks: Sequence[int], name: str) -> MPICarrier:
        tag = hash_of(name)
        self._meet(ranks, MEETING_TAG + tag)
        whole = self.comm.Get_group()
        some = whole.Incl(list(ranks))
        comm = self._begin(self.comm.Create_group, some, tag)
        some.Free()
        whole.Free()
        of_world = [self._ranks[rank] for rank in ranks]
        return MPICarrier(self.mpi, comm, self.monitor, of_world, name, self.crowded)

    def _meet(self, ranks: Sequence[int], tag: int) -> None:
        """Wait until all members of a group have arrived, so that creating it cannot block.

        Raises:
            DistTimeoutError: a member did not arrive.
        """
        note = bytearray(1)
        what = f"new_group({list(ranks)})"
        members = set(ranks) - {self.rank}
        requests = [self._begin(self.comm.Irecv, [note, 0], rank, tag) for rank in members]
        requests += [self._begin(self.comm.Isend, [note, 0], rank, tag) for rank in members]

        def all_there() -> bool:
            self.check_others()
            return bool(self.mpi.Request.Testall(requests))

        _poll(all_there, self.timeout, f"{what} on rank {self._ranks[self.rank]}")

    def close(self) -> None:
        self.monitor.forget(self._name, self)
        # MPI has only some thousand communicators. Freeing one may need all of its ranks.
        if not (self.monitor.alarmed or self.monitor.spoiled):
            self.comm.Free()

    def check_others(self) -> None:
        """Raise if a rank of the group ended so long ago that no message from it can still arrive.

        Raises:
            DistBackendError: it is.
        """
        problem = self.monitor.problem_of(self._ranks)
        if problem:
            self.monitor.spoiled = True
            raise DistBackendError(problem)

    def failure(self, error: Any) -> DistBackendError:
        """The error for users for an exception of mpi4py: it names the rank that has ended, if that
        is the cause."""
        self.monitor.spoiled = True
        if error.Get_error_class() not in self._of_callers:
            self.monitor.wait_for_alarm(self._ranks, NEWS)
        return DistBackendError(self.monitor.problem_of(self._ranks) or f"MPI: {error}")

    def _begin(self, call: Callable[..., Any], *given: Any) -> Any:
        """Call a function of MPI's.

        Raises:
            DistBackendError: it failed.
        """
        try:
            return call(*given)
        except self.mpi.Exception as error:
            raise self.failure(error) from error

    def report(self, problem: str) -> None:
        self.monitor.fail(problem)

    def missing(self, what: str) -> str:
        self.monitor.spoiled = True
        return self.monitor.ask(self._name, self._ranks, what)

    # Messages

    def send(self, array: Array, dst: int, tag: int) -> Request | None:
        return _Pending(self, self._begin(self.comm.Isend, as_moved(array), dst, tag))

    def recv(self, out: Array, src: int, tag: int) -> Request | None:
        src = self._any if src == ANY_SOURCE else src
        return _Received(
            self, self._begin(self.comm.Irecv, as_moved(out), src, tag), self.mpi.Status()
        )

    # Collectives

    def barrier(self) -> Request | None:
        return _Pending(self, self._begin(self.comm.Ibarrier))

    def broadcast(self, array: Array, root: int) -> Request | None:
        return _Pending(self, self._begin(self.comm.Ibcast, as_moved(array), root))

    def all_gather(self, out: Array, array: Array) -> Request | None:
        return _Pending(self, self._begin(self.comm.Iallgather, as_moved(array), as_moved(out)))

    def gather(self, out: Array | None, array: Array, root: int) -> Request | None:
        into = None if out is None or self.rank != root else as_moved(out)
        return _Pending(self, self._begin(self.comm.Igather, as_moved(array), into, root))

    def scatter(self, out: Array, array: Array | None, root: int) -> Request | None:
        source = None if array is None or self.rank != root else as_moved(array)
        return _Pending(self, self._begin(self.comm.Iscatter, source, as_moved(out), root))

    def all_to_all(
        self,
        out: Array,
        array: Array,
        out_counts: Sequence[int] | None,
        in_counts: Sequence[int] | None,
    ) -> Request | None:
        source, into = as_moved(array), as_moved(out)
        if out_counts is None or in_counts is None:
            return _Pending(self, self._begin(self.comm.Ialltoall, source, into))
        request = self._begin(
            self.comm.Ialltoallv, [source, list(in_counts)], [into, list(out_counts)]
        )
        return _Pending(self, request)

    def summing(self, group: Summing) -> Callable[[Array], None]:
        other = super().summing(group)
        begin, in_place, plus = self.comm.Iallreduce, self.mpi.IN_PLACE, self.mpi.SUM
        types, refused = types_of_sums(self.mpi), self.mpi.Exception

        def sum_now(array: Array) -> None:
            dtype = array.dtype
            known = types.get(dtype)
            if known is None:
                return other(array)
            group.last = (dtype, array.shape)
            try:
                # This way mpi4py need not detect the type, and small sums need no request of ours.
                # MPICH mostly completes them at the third question.
                request = begin(in_place, (array, known), plus)
                if request.Test() or request.Test() or request.Test():
                    return None
                for _ in AT_ONCE:
                    if request.Test():
                        return None
            except refused as error:
                raise group.failed_sum(array, self.failure(error)) from error
            return group.wait_for_sum(array, _Pending(self, request))

        return sum_now

    def all_reduce(self, out: Array, array: Array, op: ReduceOp) -> Request | None:
        source = as_reduced(array)
        known = reduction(self.mpi, op, source.dtype)
        if source is array:
            given = self._in_place if out is array else array
            return _Pending(self, self._begin(self.comm.Iallreduce, given, out, known))
        return _Reduced(
            self, self._begin(self.comm.Iallreduce, self._in_place, source, known), source, out
        )

    def reduce(self, out: Array, array: Array, root: int, op: ReduceOp) -> Request | None:
        source = as_reduced(array)
        known = reduction(self.mpi, op, source.dtype)
        if self.rank != root:
            return _Pending(self, self._begin(self.comm.Ireduce, source, None, known, root))
        if source is array:
            given = self._in_place if out is array else array
            return _Pending(self, self._begin(self.comm.Ireduce, given, out, known, root))
        return _Reduced(
            self, self._begin(self.comm.Ireduce, self._in_place, source, known, root), source, out
        )

    def reduce_scatter(self, out: Array, array: Array, op: ReduceOp) -> Request | None:
        source = as_reduced(array)
        known = reduction(self.mpi, op, source.dtype)
        if source is array:
            return _Pending(self, self._begin(self.comm.Ireduce_scatter_block, array, out, known))
        result = empty_like(source, out.shape)
        return _Reduced(
            self, self._begin(self.comm.Ireduce_scatter_block, source, result, known), result, out
        )


def hash_of(name: str) -> int:
    """A tag that all ranks derive from a group's name."""
    return zlib.crc32(name.encode()) % MEETING_TAG


def _check_placed(rank: int, size: int, own: int, count: int) -> None:
    """Check that the program's rank and size match MPI's.

    Raises:
        ValueError: they are not.
    """
    if size not in (-1, count) and count == 1:
        from mpi4py import MPI

        library = MPI.Get_library_version().strip().splitlines()[0]
        raise ValueError(
            f"init_process_group(): world_size is {size}, but MPI ({library}) is on its own in "
            "this process. Processes that torchrun or multiprocessing starts become one program "
            "if the library is MPICH or one like it, and if nothing starts MPI before "
            f"init_process_group(). Else run `plugrad launch -n {size} program.py` or `mpiexec -n "
            f"{size} python program.py`"
        )
    if size not in (-1, count) or rank not in (-1, own):
        raise ValueError(
            f"init_process_group(): rank and world_size must be MPI's, {own} and {count}, or be "
            f"left out, got {rank} and {size}"
        )


def _poll(over: Callable[[], bool], limit: float, what: str) -> None:
    """Poll until it is complete.

    Raises:
        DistTimeoutError: it takes too long.
    """
    start = time.monotonic()
    while not over():
        if time.monotonic() - start > limit:
            raise DistTimeoutError(f"{what} did not end within {limit:g} s: a rank is missing")
        time.sleep(0.0001)
