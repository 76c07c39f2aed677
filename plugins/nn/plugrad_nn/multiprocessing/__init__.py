"""plugrad.multiprocessing: Python's multiprocessing, with tensors that processes share.

Once it is imported, a tensor that passes through a queue or a pipe moves to shared memory, so both
processes see each other's writes. `spawn` starts processes and raises their errors.

>>> import plugrad
>>> import plugrad.multiprocessing as mp
>>> queue = mp.SimpleQueue()
>>> x = plugrad.zeros(2)
>>> queue.put(x)
>>> x += 1
>>> queue.get()
tensor([1., 1.])
"""

# ruff: noqa: F405  # what a star import brings
from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403  # what it has is meant to be here
from typing import Any

from plugrad_nn.multiprocessing.processes import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)
from plugrad_nn.multiprocessing.reductions import init_reductions
from plugrad_nn.multiprocessing.sharing import (
    get_all_sharing_strategies,
    get_sharing_strategy,
    is_shared,
    set_sharing_strategy,
    share_memory,
)

__all__ = [
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "init_reductions",
    "is_shared",
    "set_sharing_strategy",
    "share_memory",
    "spawn",
    "start_processes",
]
# Python's names, written out because type checkers cannot read another module's `__all__`.
__all__ += [
    "Array", "AuthenticationError", "Barrier", "BoundedSemaphore", "BufferTooShort", "Condition",
    "Event", "JoinableQueue", "Lock", "Manager", "Pipe", "Pool", "Process", "ProcessError",
    "Queue", "RLock", "RawArray", "RawValue", "Semaphore", "SimpleQueue", "TimeoutError", "Value",
    "active_children", "allow_connection_pickling", "cpu_count", "current_process",
    "freeze_support", "get_all_start_methods", "get_context", "get_logger", "get_start_method",
    "log_to_stderr", "parent_process", "reducer", "set_executable", "set_forkserver_preload",
    "set_start_method",
]  # fmt: skip

init_reductions()


def __getattr__(name: str) -> Any:
    # Names outside of `__all__` of multiprocessing, such as its submodules.
    return getattr(multiprocessing, name)
