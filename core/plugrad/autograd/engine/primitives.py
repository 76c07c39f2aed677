"""Primitives: the locks, conditions and threads that the engine is built from.

The engine takes them from one object, so that a test can put a scheduler of its own in place of
the operating system's and try out how the threads of a backward pass interleave.
"""

from __future__ import annotations

import threading
from typing import Any

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Primitives:
    """Those of Python's `threading`."""

    def lock(self) -> Any:
        """A mutex: a context manager."""
        return threading.Lock()

    def condition(self) -> Any:
        """A mutex with `wait()`, `notify()` and `notify_all()`."""
        return threading.Condition(threading.Lock())

    def start_thread(self, name: str, target: Any) -> Any:
        """Run `target()` on a new thread, which does not keep the process alive; its handle has
        `join(timeout)`."""
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        return thread
