"""How many threads a kernel may use, and work that is spread over them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

Part = TypeVar("Part")


@cache
def thread_count() -> int:
    """As many as BLAS may use."""
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    if allowed.isdigit():
        return max(1, int(allowed))
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_count(), "plugrad-cpu")


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def in_parts(work: Callable[[int, int], Part], count: int, parts: int) -> list[Part]:
    """What `work(first, last)` gives for ranges that make up `range(count)`, for each on a thread.

    Only for work that releases the lock for nearly all of its time.
    """
    if parts <= 1:
        return [work(0, count)]
    edges = [count * i // parts for i in range(parts + 1)]
    # The calling thread does the last part itself.
    others = [_pool().submit(work, edges[i], edges[i + 1]) for i in range(parts - 1)]
    last = work(edges[-2], count)
    return [*(other.result() for other in others), last]
