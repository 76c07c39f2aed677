"""Counts the threads that are loading parts of plugrad on first use; a fork waits for them.

The module is compiled, so that no interrupt occurs while the gate is held.
"""

from __future__ import annotations

import threading
from typing import Any, Final, final

from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.scope import Scope


@final
class FirstUse:
    """Which threads import and read what plugrad needs when it is first used: the first thread, or
    several. It is not a lock, so it cannot deadlock with other locks."""

    def __init__(self) -> None:
        self.gate = threading.Lock()
        self._threads: dict[int, int] = {}

    def begin(self) -> None:
        """The calling thread begins to."""
        own = threading.get_ident()
        with self.gate:
            self._threads[own] = self._threads.get(own, 0) + 1

    def end(self) -> None:
        """It has done so."""
        own = threading.get_ident()
        with self.gate:
            self._threads[own] -= 1
            if not self._threads[own]:
                del self._threads[own]

    def is_elsewhere(self) -> bool:
        """Whether another thread is in there."""
        return any(thread != threading.get_ident() for thread in list(self._threads))

    def forget_others(self) -> None:
        """In a child, only the forking thread is left."""
        for thread in list(self._threads):
            if thread != threading.get_ident():
                del self._threads[thread]


FIRST_USE: Final = FirstUse()


@final
class InFirstUse(Scope):
    """Context manager, for one use: the thread does so in the block."""

    def __init__(self) -> None:
        self.begun = False

    def read(self, state: LocalState) -> Any:
        return None

    def change(self, state: LocalState) -> None:
        FIRST_USE.begin()
        self.begun = True

    def restore(self, state: LocalState, before: Any) -> None:
        if self.begun:
            self.begun = False
            FIRST_USE.end()
