"""In processes that multiprocessing starts with "spawn" or "forkserver", torch means plugrad
too."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import spawn
from typing import Any, Final

_Data = dict[str, Any]

# The key of the note in a new process's preparation data; multiprocessing ignores it.
_KEY: Final = "plugrad_as_torch"
# The function of multiprocessing that makes the preparation data.
_FUNCTION: Final = "get_preparation_data"


class _Note:
    """Calls a function when the new process unpickles it, before that imports the program."""

    def __init__(self, function: Callable[[], None]) -> None:
        self._function = function

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return self._function, ()


# multiprocessing's own function, while ours replaces it.
_before: list[Callable[[str], _Data]] = []


def tell_new_processes(function: Callable[[], None]) -> None:
    """Make each new process call a function before it imports any of the program."""
    own = spawn.get_preparation_data

    def get_preparation_data(name: str) -> _Data:
        return {**own(name), _KEY: _Note(function)}

    _before.append(own)
    setattr(spawn, _FUNCTION, get_preparation_data)


def tell_no_more() -> None:
    """Undo `tell_new_processes`."""
    setattr(spawn, _FUNCTION, _before.pop())
