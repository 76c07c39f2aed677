"""A fork's child finds no lock of dispatch held by a thread that it does not have."""

from __future__ import annotations

# Interpreted: it runs only when a process forks.
import os
from typing import Any, Final

from plugrad.dispatch import active_backends, keys, registration

# In the order in which threads take them that take more than one.
_LOCKS: Final[list[Any]] = [active_backends._lock, registration.LOCK, keys._lock]


def hold_while_forking(lock: Any) -> None:
    """Have no other thread hold a lock at a fork; one that is taken before those of dispatch."""
    _LOCKS.insert(0, lock)


def _acquire() -> None:
    for lock in _LOCKS:
        lock.acquire()


def _release() -> None:
    for lock in _LOCKS[::-1]:
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release)
