"""The number of threads that a kernel may use, and functions that spread work over them."""

from __future__ import annotations

import importlib
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Final, TypeVar

Part = TypeVar("Part")


# What BLAS libraries read, the first that is set being the one that counts for most of them.
THREAD_VARIABLES: Final = (
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "OMP_NUM_THREADS",
)


class _Allowed:
    """The number of threads given to `allow_threads`; None if it was not called."""

    count: int | None = None


_allowed: Final = _Allowed()


def thread_count() -> int:
    """As many as were allowed, else as BLAS uses on its own."""
    return _allowed.count or _unless_told()


@cache
def _unless_told() -> int:
    for variable in THREAD_VARIABLES:
        value = os.environ.get(variable, "")
        if value.isdigit():
            return max(1, int(value))
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def allow_threads(count: int) -> None:
    """Let kernels and BLAS use this number of threads from now on."""
    _allowed.count = count
    _pool.cache_clear()
    limit_libraries()


def limit_libraries() -> None:
    """Set the number of threads of every BLAS in the process; call it again after SciPy has loaded
    its own."""
    if _allowed.count is not None:
        importlib.import_module("threadpoolctl").threadpool_limits(_allowed.count, "blas")


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_count(), "plugrad-cpu")


if hasattr(os, "register_at_fork"):
    # Threads do not survive a fork.
    os.register_at_fork(after_in_child=_pool.cache_clear)


def in_parts(work: Callable[[int, int], Part], count: int, threads: int, parts: int) -> list[Part]:
    """What `work(first, last)` gives for ranges that make up `range(count)`, in their order.

    Only for work that releases the lock for nearly all of its time. Threads take a part when they
    are done with one, so that one that the system does not run holds up the others little.
    """
    if min(threads, parts) <= 1:
        return [work(0, count)]
    edges = [count * i // parts for i in range(parts + 1)]
    found: dict[int, Part] = {}
    left = deque(range(parts))

    def take() -> None:
        while left:
            try:
                part = left.popleft()
            except IndexError:  # another thread was faster
                return
            found[part] = work(edges[part], edges[part + 1])

    others = [_pool().submit(take) for _ in range(min(threads, parts) - 1)]
    try:
        take()
    finally:
        left.clear()
        wait([other for other in others if not other.cancel()])
    for other in others:
        if not other.cancelled():
            other.result()
    return [found[part] for part in range(parts)]
