"""Watches operations on GPUs: the host does not wait for them, so only this notices if one never
ends."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING

from plugrad_cuda.collectives.requests import Enqueued
from plugrad_distributed.errors import DistBackendError

if TYPE_CHECKING:
    from plugrad_cuda.collectives.carrier import NCCLCarrier

__all__ = ["end_process", "watch"]

PAUSE = 0.1


def end_process(text: str) -> None:
    """Say why, and end. What the GPU computed after an operation that did not end is worthless, and
    the program would go on with it. PyTorch ends such processes, too."""
    print(f"plugrad.distributed: {text}", file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(1)


class _Watch:
    """The thread. It sleeps while no operation is running."""

    def __init__(self) -> None:
        self._under_way: list[tuple[NCCLCarrier, Enqueued, str, float]] = []
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None

    def add(self, carrier: NCCLCarrier, request: Enqueued) -> None:
        """Watch an operation, until it is over."""
        what = carrier.state()[1]
        with self._news:
            self._under_way.append((carrier, request, what, time.monotonic()))
            # A process that was forked has no such thread.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="plugrad nccl", daemon=True)
                self._thread.start()
            self._news.notify()

    def _run(self) -> None:
        while True:
            with self._news:
                while not self._under_way:
                    self._news.wait()
                watched = list(self._under_way)
            over = [entry for entry in watched if self._is_over(*entry)]
            with self._news:
                self._under_way = [entry for entry in self._under_way if entry not in over]
            time.sleep(PAUSE)

    def _is_over(self, carrier: NCCLCarrier, request: Enqueued, what: str, since: float) -> bool:
        # Where it failed already, the program has got an error.
        if carrier.closed or carrier.problem or (request.done is not None and request.done.query()):
            return True
        problem = ""
        try:
            carrier.check_others()
        except DistBackendError as error:
            problem = f"failed on rank {carrier.rank} of the group: {error}"
        if not problem and time.monotonic() - since > carrier.timeout:
            missing = carrier.host.missing(what)
            problem = (
                f"did not end within {carrier.timeout:g} s on rank {carrier.rank} of the group"
                f"{': ' if missing else ''}{missing}"
            )
        if not problem:
            return False
        carrier.fail(f"{what} {problem}")
        return True


watch = _Watch()
