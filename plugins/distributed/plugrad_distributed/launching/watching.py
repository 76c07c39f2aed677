"""MPI's start among processes that met: if a rank ends meanwhile, the others raise and name it.

MPI's start waits for all ranks, without a limit. So it runs on a thread of its own, while the
calling thread listens to the server of the meeting:

    rank 1 ── its connection ends ──▶ server ──"lost 1"──▶ ranks 0, 2: DistNetworkError
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from plugrad_distributed.errors import DistNetworkError, DistTimeoutError
from plugrad_distributed.launching.connections import next_line, readable
from plugrad_distributed.launching.pmi import forget_memory

__all__ = ["init_mpi", "is_watched", "started", "watched"]

# How long to wait for the word that a rank has ended, in seconds, once the start failed: MPI may
# notice the end of a process before the server does.
NEWS = 1.0

T = TypeVar("T")


class _Watch:
    """The rank's connection to the server of the meeting, while MPI starts."""

    def __init__(self, connection: socket.socket, rank: int, limit: float, table: str) -> None:
        self._table = table
        self._connection = connection
        self._rank = rank
        self._limit = limit

    def run(self, start: Callable[[], T]) -> T:
        """What `start` returns or raises.

        Raises:
            DistNetworkError: a rank ended meanwhile.
            DistTimeoutError: it took too long.
        """
        found: list[T] = []
        failed: list[BaseException] = []
        over, end = socket.socketpair()

        def work() -> None:
            # Its end wakes threads that wait for this one.
            with end:
                try:
                    found.append(start())
                except BaseException as error:
                    failed.append(error)

        threading.Thread(target=work, name="plugrad start", daemon=True).start()
        with over:
            self._await(over)
        if failed:
            self._check(failed[0])
            raise failed[0]
        return found[0]

    def _await(self, over: socket.socket) -> None:
        """Wait until the start is over."""
        ready = readable((over, self._connection), self._limit)
        if over in ready:
            return
        if self._connection in ready:
            raise self._lost()
        self._forget_memory()
        raise DistTimeoutError(
            f"init_process_group() on rank {self._rank}: MPI did not start within {self._limit:g} s"
        )

    def _check(self, error: BaseException) -> None:
        """Raise if the start failed because a rank has ended."""
        if isinstance(error, Exception) and readable((self._connection,), NEWS):
            raise self._lost() from error

    def _forget_memory(self) -> None:
        """MPI will not start. Its thread, which still waits, may create names until the end of this
        process."""
        forget_memory(self._table)
        atexit.register(forget_memory, self._table)

    def _lost(self) -> DistNetworkError:
        self._forget_memory()
        self._connection.settimeout(NEWS)
        word = ""
        with contextlib.suppress(OSError):
            word = next_line(self._connection)
        kind, _, rank = word.partition(" ")
        who = f"rank {rank}" if kind == "lost" else "the server of the meeting"
        return DistNetworkError(
            f"init_process_group() on rank {self._rank}: {who} ended while MPI started"
        )

    def tell(self) -> None:
        """MPI has started: from now on the end of this rank is not the server's business."""
        with contextlib.suppress(OSError):
            self._connection.sendall(b"started\n")


_watches: list[_Watch] = []


@contextlib.contextmanager
def watched(connection: socket.socket, rank: int, limit: float, table: str) -> Iterator[None]:
    """Within it, what `started` runs is ended by an error if a rank ends or after a limit.

    Args:
        connection: to the server of the meeting; it is closed at the end.
        rank: this process's number.
        limit: in seconds.
        table: MPICH's name for the program.
    """
    watch = _Watch(connection, rank, limit, table)
    _watches.append(watch)
    try:
        with connection:
            yield
            watch.tell()
    finally:
        _watches.remove(watch)


def is_watched() -> bool:
    """Whether this process is about to start MPI among others that it met."""
    return bool(_watches)


def started(start: Callable[[], T]) -> T:
    """What a function returns that starts MPI, watched if the processes met before.

    Raises:
        DistNetworkError: another rank ended meanwhile.
        DistTimeoutError: it took too long.
    """
    return _watches[-1].run(start) if _watches else start()


def init_mpi(mpi: Any) -> None:
    """Start MPI without Python's lock, which mpi4py keeps meanwhile; `mpi` is `mpi4py.MPI`.

    Raises:
        RuntimeError: it failed.
    """
    provided = ctypes.c_int()
    # The library that mpi4py is linked with.
    library = ctypes.CDLL(mpi.__file__)
    code = library.MPI_Init_thread(None, None, mpi.THREAD_MULTIPLE, ctypes.byref(provided))
    if code != mpi.SUCCESS:
        raise RuntimeError(f"MPI_Init_thread() failed with error code {code}")
    # As mpi4py has them where it starts MPI by itself: errors become exceptions.
    for communicator in (mpi.COMM_SELF, mpi.COMM_WORLD):
        communicator.Set_errhandler(mpi.ERRORS_RETURN)
