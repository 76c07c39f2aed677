"""How many threads compute: those of the BLAS and OpenMP libraries in the process, which the
package threadpoolctl counts and sets. Without it, the number is kept and changes nothing."""

from __future__ import annotations

import os
from typing import Any

__all__ = [
    "get_num_interop_threads",
    "get_num_threads",
    "set_num_interop_threads",
    "set_num_threads",
]

_kept = {"threads": os.cpu_count() or 1, "interop": os.cpu_count() or 1}


def _libraries() -> list[Any]:
    try:
        from threadpoolctl import ThreadpoolController
    except ModuleNotFoundError:
        return []
    found: list[Any] = ThreadpoolController().lib_controllers
    return found


def get_num_threads() -> int:
    """How many threads one operator may use.

    >>> get_num_threads() >= 1
    True
    """
    return max((library.get_num_threads() for library in _libraries()), default=_kept["threads"])


def set_num_threads(int: int) -> None:
    """Let operators use this many threads.

    Raises:
        RuntimeError: it is no integer, or below 1.
    """
    _kept["threads"] = _checked("set_num_threads", int)
    for library in _libraries():
        library.set_num_threads(int)


def get_num_interop_threads() -> int:
    """How many operators may run beside each other; plugrad's engine has a thread a device."""
    return _kept["interop"]


def set_num_interop_threads(int: int) -> None:
    """Accepted and kept; see `get_num_interop_threads`.

    Raises:
        RuntimeError: it is no integer, or below 1.
    """
    _kept["interop"] = _checked("set_num_interop_threads", int)


def _checked(function: str, number: Any) -> int:
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise RuntimeError(f"{function} expects an int, but got {type(number).__name__}")
    if number < 1:
        raise RuntimeError(f"{function} expects a positive integer")
    return int(number)
