"""A column of a table of events."""

from __future__ import annotations

# Interpreted: it runs when a profile is over.
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

GAP: Final = "  "


@dataclass(frozen=True)
class Column:
    """A heading, its width, and the value that it shows of an event."""

    heading: str
    width: int
    cell: Callable[[Any], object]
    align: str = ">"

    def fit(self, value: object) -> str:
        return f"{value!s:{self.align}{self.width}}"
