"""Families of operators that are loaded when one of their operators is first requested.

Most operators are declared when plugrad is imported. For a family on demand, such as Fourier
transforms, `announce` registers only the names.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Final, final


@final
class _Families:
    """Which modules declare operators that are not declared yet."""

    def __init__(self) -> None:
        # By qualified name; a family's names are removed when it is loaded.
        self.waiting: dict[str, str] = {}
        self.announced: set[str] = set()
        self.elementwise: tuple[str, ...] = ()
        self.undo: Callable[[set[str]], None] | None = None


_families: Final = _Families()


def announce(modules: Mapping[str, str], elementwise: tuple[str, ...] = ()) -> None:
    """Operators by qualified name (``plugrad::fft_fft``), each with the module that declares it.

    Args:
        modules: the name of all overloads together (``plugrad::histogram``) is among the keys.
        elementwise: which of them have a `structure`.
    """
    _families.waiting.update(modules)
    _families.announced.update(modules)
    _families.elementwise += elementwise


def elementwise_on_demand() -> tuple[str, ...]:
    """The elementwise operators that were announced, loaded or not."""
    return _families.elementwise


def set_undo(undo: Callable[[set[str]], None]) -> None:
    """`undo(names)` removes the operators that a module had declared when its import failed."""
    _families.undo = undo


def is_on_demand(qualified_name: str) -> bool:
    """Whether an operator belongs to a family on demand, loaded or not."""
    return qualified_name in _families.announced


def is_waiting(qualified_name: str) -> bool:
    """Whether an operator is announced, and its family not loaded yet."""
    return qualified_name in _families.waiting


def waiting() -> list[str]:
    """The qualified names of operators in families that are not loaded yet."""
    return list(_families.waiting)


def load_family_of(qualified_name: str) -> bool:
    """Load the family of an operator; whether there was one to load."""
    module = _families.waiting.get(qualified_name)
    if module is None:
        return False
    load_family(module)
    return True


def load_families() -> None:
    """Load all families that are not loaded yet."""
    if _families.waiting:
        for module in sorted(set(_families.waiting.values())):
            load_family(module)


def load_family(module: str) -> None:
    """Import the module of a family.

    If that fails, or an interrupt ends it, the operators that it declared are removed, so that the
    next try starts afresh.
    """
    names = {name for name, owner in _families.waiting.items() if owner == module}
    try:
        importlib.import_module(module)
    except BaseException:
        if _families.undo is not None:
            _families.undo(names)
        raise
    for name in names:
        _families.waiting.pop(name, None)
