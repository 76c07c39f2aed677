"""Fits a table of events to a terminal: narrows its columns first, then drops some."""

from __future__ import annotations

# Interpreted: it runs when a profile is over.
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from plugrad.autograd.profiler.columns import GAP, Column

# What is left out first where the terminal is narrow; the rest of a name is more informative.
EXPENDABLE: Final = (
    "Input Shapes",
    "Node ID",
    "CPU time avg",
    "CPU total %",
    "CPU Mem",
    "Kernel",
    "Self CPU %",
)
LEAST_NAME: Final = 24


def terminal_width() -> int | None:
    """How long a printed line may be: as `COLUMNS` in the environment says, else as wide as the
    terminal; None where there is neither, as in a pipe."""
    wanted = os.environ.get("COLUMNS", "")
    if sys.stdout.isatty() or (wanted.isdigit() and int(wanted)):
        return shutil.get_terminal_size().columns
    return None


def fitted(columns: Sequence[Column], events: Sequence[Any], width: int) -> list[Column]:
    """The columns that fit beside each other in a width, the name shortened if it must be."""
    found = [_narrow(column, events) for column in columns]
    for heading in EXPENDABLE:
        if _least(found) > width:
            found = [column for column in found if column.heading != heading]
    name = found[0]
    left = width - sum(column.width + len(GAP) for column in found[1:]) - len(GAP)
    return [_shortened(name, min(name.width, max(LEAST_NAME, left))), *found[1:]]


def _least(columns: Sequence[Column]) -> int:
    others = sum(column.width + len(GAP) for column in columns[1:])
    return min(columns[0].width, LEAST_NAME) + len(GAP) + others


def _narrow(column: Column, events: Sequence[Any]) -> Column:
    widest = max((len(str(column.cell(event))) for event in events), default=0)
    return replace(column, width=max(len(column.heading), widest))


def _shortened(name: Column, width: int) -> Column:
    def cell(event: Any) -> str:
        text = str(name.cell(event))
        return text if len(text) <= width else text[: width - 3] + "..."

    return replace(name, width=width, cell=cell)
