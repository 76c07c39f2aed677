"""Hooks for changes of the configuration. It does not import it, since most processes never read
it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_changed: Final[list[Callable[[], None]]] = []
_forgotten: Final[list[Callable[[], None]]] = []


def set_configuration_hooks(changed: Callable[[], None], forgotten: Callable[[], None]) -> None:
    """Install functions that observe the configuration: `changed()` is called after `set` and when
    its block ends, `forgotten()` before environment and file are read again."""
    _changed[:] = [changed]
    _forgotten[:] = [forgotten]


def tell_changed() -> None:
    """The configuration has changed."""
    for follow in _changed:
        follow()


def tell_forgotten() -> None:
    """Environment and file are read again at the next use."""
    for follow in _forgotten:
        follow()
