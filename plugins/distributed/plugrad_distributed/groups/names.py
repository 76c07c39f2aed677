"""Groups by name: operators refer to them by name, and copies of objects with groups find them
again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plugrad_distributed.groups.process_group import ProcessGroup

__all__ = ["NAMED", "named"]

NAMED: dict[str, ProcessGroup] = {}


def named(name: str) -> ProcessGroup:
    """The group with this name.

    Raises:
        ValueError: there is none.
    """
    found = NAMED.get(name)
    if found is None:
        raise ValueError(f"there is no process group {name!r}: it was destroyed, or never created")
    return found
