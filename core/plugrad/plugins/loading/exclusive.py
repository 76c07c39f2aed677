"""Runs work that must not run twice in one thread only, under a lock that cannot deadlock with
imports.

Loading a plugin runs its code, which imports modules; and a module that is being imported may need
a plugin. With an ordinary lock, a thread that loads a plugin could wait for a module that another
thread imports, while that thread waits for the plugin. The import system tracks which thread waits
for which of its own locks, and breaks such cycles. So this module uses one of its locks: it runs
the work as the import of a module with a unique name.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Final

from plugrad.dispatch.fork import hold_while_forking

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # the import system only needs the methods


# What is imported. No dot: the import system would look for a parent.
WORK_PREFIX: Final = "<plugrad: "


class _Local(threading.local):
    """The work of the thread that is about to import."""

    work: Callable[[], object] | None = None


_local: Final = _Local()
_guard: Final = threading.Lock()
hold_while_forking(_guard)


class Circle(RuntimeError):
    """Another thread does the work, and waits for a module that the calling thread imports."""


def run_exclusively(name: str, work: Callable[[], object]) -> None:
    """Do `work` unless another thread is doing the work of that name; then wait for that instead.

    `work` must see for itself whether it was done meanwhile. Called again from within itself, this
    returns at once.

    Raises:
        Circle: waiting would never end.
        Exception: what `work` raises.
    """
    key = WORK_PREFIX + name.replace(".", "·") + ">"
    _forget_finished(key)
    before, _local.work = _local.work, work
    try:
        importlib.import_module(key)
    except RuntimeError as error:
        if is_deadlock(error):
            raise Circle(str(error)) from None
        raise
    finally:
        _local.work = before
        _forget_finished(key)


def is_deadlock(error: BaseException) -> bool:
    """Whether the import system broke a circle of waiting threads at this place."""
    # A private class of importlib's, a RuntimeError.
    return type(error).__name__ == "_DeadlockError"


def _forget_finished(key: str) -> None:
    """Allow the next call to do its work. A module that is being imported stays."""
    with _guard:
        module = sys.modules.get(key)
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            del sys.modules[key]


def find_work(fullname: str) -> ModuleSpec | None:
    """The module that runs the calling thread's work as its import."""
    work = _local.work
    return None if work is None else ModuleSpec(fullname, _WorkLoader(work))


class _WorkLoader(Loader):
    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        self._work()
