"""Primitives: the locks and threads that the engine is built from.

The engine takes them from one object, so that tests can replace the operating system's scheduler
and try out how the threads of a backward pass interleave. Waiting uses only locks: their methods
are C functions, which an interrupt cannot stop halfway, unlike those of `threading.Condition`.
"""

from __future__ import annotations

import threading
from typing import Any, final

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Primitives:
    """The primitives of Python's `threading`."""

    def lock(self) -> Any:
        """A mutex: a context manager with `acquire(blocking=True)` and `release()`, which another
        thread than the one that acquired it may call."""
        return threading.Lock()

    def start_thread(self, name: str, target: Any) -> Any:
        """Run `target()` on a new thread, which does not keep the process alive; its handle has
        `join(timeout)`."""
        thread = threading.Thread(target=target, name=name, daemon=True)
        thread.start()
        return thread


@final
class Bell:
    """Wakes one waiting thread when others ring, under a lock that they share.

    Use it like a condition: `prepare` and `ring` under the lock, `wait` after it. A `wait` may
    return without a reason.
    """

    def __init__(self, primitives: Primitives) -> None:
        self._silence: Any = primitives.lock()
        self._silence.acquire()
        self._awaited: bool = False

    def prepare(self) -> None:
        """From now on a `ring` ends the next `wait`."""
        # An interrupted wait may have left the last ring unheard.
        self._silence.acquire(False)
        self._awaited = True

    def wait(self) -> None:
        self._silence.acquire()

    def ring(self) -> None:
        if self._awaited:
            self._awaited = False
            self._silence.release()
