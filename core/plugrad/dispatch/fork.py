"""A fork waits until no other thread holds a lock of plugrad's or imports a module of its.

A child has only the thread that forked. What another thread held stays locked there for ever, the
import system's locks among them, under which plugins are loaded when plugrad is first used.
"""

from __future__ import annotations

# Interpreted: it runs only when a process forks.
import _imp
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from importlib import _bootstrap
from typing import Any, Final, final

from plugrad.dispatch import active_backends, keys, registration
from plugrad.dispatch.local_state import WATCH, LocalState
from plugrad.dispatch.scope import Scope

# In the order in which threads take them that take more than one.
_LOCKS: Final[list[Any]] = [active_backends._lock, registration.LOCK, keys._lock, WATCH.lock]

# Ours, and the names under which `plugrad.plugins.exclusive` works.
_PREFIXES: Final = ("plugrad", "<plugrad: ")

# For how long a fork waits: a thread that is waited for may itself wait for the one that forks.
PATIENCE: Final = 5.0


def hold_while_forking(lock: Any) -> None:
    """Have no other thread hold a lock at a fork; one that is taken before those of dispatch."""
    _LOCKS.insert(0, lock)


# Functions that give locks of objects that come and go, called while all of `_LOCKS` are held.
_SOURCES: Final[list[Callable[[], Iterable[Any]]]] = []


def hold_each_while_forking(locks: Callable[[], Iterable[Any]]) -> None:
    """Have no other thread hold one of the locks that a function gives at a fork. None may become
    known to it while an announced lock is held."""
    _SOURCES.append(locks)


# The import system's locks by name, which typeshed does not know, as weak references.
_import_locks: Final[dict[str, Any]] = getattr(_bootstrap, "_module_locks", {})

_held: Final[list[Any]] = []


class FirstUse:
    """Which threads import and read what plugrad needs when it is first used: the one that comes
    first, or several. It is no lock, so that no order of locks can make it wait."""

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._threads: dict[int, int] = {}
        hold_while_forking(self._gate)

    def begin(self) -> None:
        """The calling thread begins to."""
        own = threading.get_ident()
        with self._gate:
            self._threads[own] = self._threads.get(own, 0) + 1

    def end(self) -> None:
        """It has done so."""
        own = threading.get_ident()
        with self._gate:
            self._threads[own] -= 1
            if not self._threads[own]:
                del self._threads[own]

    def is_elsewhere(self) -> bool:
        """Whether another thread is in there."""
        return any(thread != threading.get_ident() for thread in list(self._threads))

    def forget_others(self) -> None:
        """In a child: only the thread that forked is left."""
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


def _acquire() -> None:
    end = time.monotonic() + PATIENCE
    while True:
        late = time.monotonic() > end
        # Nobody can begin to import a module while this lock is held.
        _imp.acquire_lock()
        free = late or not (_under_way() or FIRST_USE.is_elsewhere())
        # Without waiting, so as not to be in the way of a thread that takes them in another order.
        taken = [lock for lock in _LOCKS if lock.acquire(blocking=False)] if free else []
        whole = len(taken) == len(_LOCKS)
        if whole:
            others = _others()
            taken += [lock for lock in others if lock.acquire(blocking=False)]
            whole = len(taken) == len(_LOCKS) + len(others)
        if late or (free and whole):
            _held.extend(taken)
            return
        for lock in taken[::-1]:
            lock.release()
        _imp.release_lock()
        time.sleep(0.0005)


def _release() -> None:
    while _held:
        _held.pop().release()
    _imp.release_lock()


def _others() -> list[Any]:
    return [lock for locks in _SOURCES for lock in locks()]


def _release_in_child() -> None:
    held = {id(lock) for lock in _held}
    for lock in [*_LOCKS, *_others()]:
        if id(lock) not in held:
            lock._at_fork_reinit()
    for name in _under_way():
        _import_locks.pop(name, None)
        sys.modules.pop(name, None)
    FIRST_USE.forget_others()
    _release()


def _under_way() -> list[str]:
    """Modules of plugrad's that other threads import."""
    found = []
    for name, reference in list(_import_locks.items()):
        if name.startswith(_PREFIXES):
            lock = reference()
            owner = getattr(lock, "owner", None)
            if owner is not None and owner != threading.get_ident():
                found.append(name)
    return found


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release_in_child)
