"""Makes a fork wait until no other thread holds one of plugrad's locks or imports its modules.

The child has only the thread that forked. Locks that another thread held stay locked there forever,
including the import system's locks, which plugins need when they are loaded on first use.
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
from typing import Any, Final

from plugrad.dispatch import keys, registration
from plugrad.dispatch.backends import active as active_backends
from plugrad.dispatch.first_use import FIRST_USE
from plugrad.dispatch.local_state import WATCH

# In the order in which threads take them that take more than one.
_LOCKS: Final[list[Any]] = [
    *(FIRST_USE.gate, active_backends._lock, registration.LOCK, keys._lock, WATCH.lock)
]

# Ours, and the names under which `plugrad.plugins.loading.exclusive` works.
_PREFIXES: Final = ("plugrad", "<plugrad: ")

# The longest time that a fork waits: another thread may itself wait for the forking thread.
PATIENCE: Final = 5.0


def hold_while_forking(lock: Any) -> None:
    """Ensure that no other thread holds this lock at a fork; it is acquired before dispatch's
    locks."""
    _LOCKS.insert(0, lock)


# Functions that return locks of short-lived objects, called while all of `_LOCKS` are held.
_SOURCES: Final[list[Callable[[], Iterable[Any]]]] = []


def hold_each_while_forking(locks: Callable[[], Iterable[Any]]) -> None:
    """Ensure that no other thread holds a lock from `locks()` at a fork. That function must not
    return new locks while an announced lock is held."""
    _SOURCES.append(locks)


# The import system's locks by name, which typeshed lacks, as weak references.
_import_locks: Final[dict[str, Any]] = getattr(_bootstrap, "_module_locks", {})

_held: Final[list[Any]] = []


def _acquire() -> None:
    end = time.monotonic() + PATIENCE
    while True:
        late = time.monotonic() > end
        # No thread can begin to import a module while this lock is held.
        _imp.acquire_lock()
        free = late or not (_under_way() or FIRST_USE.is_elsewhere())
        # Without waiting, so it cannot deadlock with a thread that takes them in another order.
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
