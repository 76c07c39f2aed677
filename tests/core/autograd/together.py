"""Several threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable


def run_together(*workers: Callable[[], None]) -> None:
    """Start all at the same time, each in a thread; raise the first failure."""
    barrier = threading.Barrier(len(workers))
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        barrier.wait()
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
