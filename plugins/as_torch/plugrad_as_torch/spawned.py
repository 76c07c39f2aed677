"""Processes that a program starts anew, by multiprocessing's "spawn" and "forkserver": in them,
too, torch means plugrad."""

from __future__ import annotations

import sys
from collections.abc import Callable
from multiprocessing import spawn
from typing import Any, Final

_Data = dict[str, Any]

# The key under which the note is in what a new process is told; multiprocessing ignores it.
_KEY: Final = "plugrad_as_torch"
# By which multiprocessing makes what a new process is told.
_FUNCTION: Final = "get_preparation_data"


class _Note:
    """Read by the new process before it imports the program, and acted on by being read."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return _install_here, ()


def _install_here() -> None:
    from plugrad_as_torch.finder import install

    if "torch" not in sys.modules:
        install()


# multiprocessing's own function, while there is another one in its place.
_before: list[Callable[[str], _Data]] = []


def tell_new_processes() -> None:
    """Have each new process install the hook before it imports anything of the program."""
    own = spawn.get_preparation_data

    def get_preparation_data(name: str) -> _Data:
        return {**own(name), _KEY: _Note()}

    _before.append(own)
    setattr(spawn, _FUNCTION, get_preparation_data)


def tell_no_more() -> None:
    """Undo `tell_new_processes`."""
    setattr(spawn, _FUNCTION, _before.pop())
