"""Ends a process of an MPI program: the others get the reason, and none waits forever.

MPI_Finalize waits for all processes. It is therefore called only when all have reported that they
reached it, and not at all after a failure.
"""

from __future__ import annotations

import atexit
import os
import sys
from types import TracebackType
from typing import Any

from plugrad_distributed.carriers.monitor import Monitor
from plugrad_distributed.launching.supervisor import LAUNCHED

__all__ = ["end_with"]

# mpiexec ends all ranks when one ends after a failure, unless `plugrad launch` prevents it. The
# failed rank waits this many seconds, so that the others can report where they were.
LINGER = 5.0


class _Ending:
    """The handler at the end of the process. There is one per process.

    Attributes:
        monitor: the process's monitor, once MPI was started.
    """

    def __init__(self) -> None:
        self.monitor: Monitor | None = None
        self._mpi: Any = None
        self._limit = 0.0
        self._process = -1
        self._failed = False
        self._previous: Any = None

    def begin(self, mpi: Any, monitor: Monitor, limit: float) -> None:
        """From now on, tell the other ranks when the process ends."""
        self._limit = limit
        if self.monitor is not None:
            return
        self.monitor, self._mpi, self._process = monitor, mpi, os.getpid()
        self._previous, sys.excepthook = sys.excepthook, self._on_exception
        atexit.register(self._at_exit)

    def _on_exception(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if self.monitor is not None and os.getpid() == self._process:
            self._failed = True
            self.monitor.fail(f"{kind.__name__}: {error}")
        self._previous(kind, error, trace)

    def _at_exit(self) -> None:
        monitor, mpi = self.monitor, self._mpi
        if monitor is None or os.getpid() != self._process or mpi.Is_finalized():
            return
        if not self._failed:
            monitor.leave()
            late = monitor.wait_for_all(self._limit)
            if late is None:
                mpi.Finalize()
                return
            if late:
                self._give_up(late)
        if LAUNCHED not in os.environ:
            monitor.wait_until_gone(min(LINGER, self._limit))
        if _finalizes_itself():
            _flush()
            os._exit(1)

    def _give_up(self, late: str) -> None:
        """Only this rank can report that its program has ended while others' have not."""
        print(f"plugrad.distributed: {late}", file=sys.stderr)
        _flush()
        os._exit(1)


def _finalizes_itself() -> bool:
    """Whether the program itself imported mpi4py, which then calls MPI_Finalize in any case."""
    import mpi4py

    return bool(mpi4py.rc.finalize is not False)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


end_with = _Ending()
