"""Processes that a program starts anew, by multiprocessing's "spawn" and "forkserver": in them,
too, torch means plugrad."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import spawn
from typing import Any, Final

_Data = dict[str, Any]

# The key under which the note is in what a new process is told; multiprocessing ignores it.
_KEY: Final = "plugrad_as_torch"
# By which multiprocessing makes what a new process is told.
_FUNCTION: Final = "get_preparation_data"


class _Note:
    """Calls a function in the new process, which reads it before it imports the program."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return self._function, ()


# multiprocessing's own function, while there is another one in its place.
_before: list[Callable[[str], _Data]] = []


def tell_new_processes(function: Callable[[], None]) -> None:
    """Have each new process call a function before it imports anything of the program."""
    own = spawn.get_preparation_data

    def get_preparation_data(name: str) -> _Data:
        return {**own(name), _KEY: _Note(function)}

    _before.append(own)
    setattr(spawn, _FUNCTION, get_preparation_data)


def tell_no_more() -> None:
    """Undo `tell_new_processes`."""
    setattr(spawn, _FUNCTION, _before.pop())
