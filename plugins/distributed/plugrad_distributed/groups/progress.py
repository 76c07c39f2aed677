"""The thread that polls operations that are not waited for, for carriers that move bytes only while
they are polled, such as MPI."""

from __future__ import annotations

import threading
import time
from typing import Protocol

__all__ = ["go_on"]

# Measured with two processes and MPICH: a burst of polls moves as many bytes as the same number of
# polls with pauses, and disturbs kernels less.
BURST = 0.0003
PAUSE = 0.0005
# With more ranks than cores, all that the thread takes is taken from ranks that compute.
CROWDED_BURST = 0.00002


class Asked(Protocol):
    """An operation that the thread polls."""

    def poke(self) -> bool:
        """Poll once; returns whether nothing is left to poll for."""

    @property
    def crowded(self) -> bool:
        """Whether there are more ranks than cores."""


class _Progress:
    """The thread. It sleeps while there is no operation to poll."""

    def __init__(self) -> None:
        self._works: list[Asked] = []
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, work: Asked) -> None:
        with self._news:
            self._works.append(work)
            # A forked process has no such thread.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="plugrad progress", daemon=True
                )
                self._thread.start()
            self._news.notify()

    def _run(self) -> None:
        while True:
            with self._news:
                while not self._works:
                    self._news.wait()
                works = list(self._works)
            over = self._ask(works)
            if over:
                with self._news:
                    self._works = [work for work in self._works if work not in over]
            else:
                time.sleep(PAUSE)

    def _ask(self, works: list[Asked]) -> list[Asked]:
        crowded = any(work.crowded for work in works)
        end = time.perf_counter() + (CROWDED_BURST if crowded else BURST)
        while True:
            over = [work for work in works if work.poke()]
            if over or time.perf_counter() > end:
                return over


_progress = _Progress()


def go_on(work: Asked) -> None:
    """Poll in a loop until nothing is left."""
    _progress.add(work)
