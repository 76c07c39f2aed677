"""How commands answer: tables for people, JSON for programs.

On a terminal everything fits its width, and sentences wrap at words. A pipe or a file gets one line
for each sentence and each row of a table, however long, unless COLUMNS sets a width.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping
from typing import IO, TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from rich.console import Console

# Wider than any table.
_UNLIMITED: Final = 10_000
# A column that may be broken into lines is not made narrower than its longest word, up to this.
_WORD: Final = 32
# Between two columns, with the table's edges.
_BETWEEN: Final = 3


def width_of(stream: IO[str]) -> int:
    """How long a line may be there."""
    wanted = os.environ.get("COLUMNS", "")
    if stream.isatty() or (wanted.isdigit() and int(wanted)):
        return shutil.get_terminal_size((80, 24)).columns
    return _UNLIMITED


def wrapped(text: str, width: int, indent: str = "") -> str:
    """Text of several lines, each broken at words only, and what is broken off indented alike."""
    lines = []
    for line in text.split("\n"):
        own = line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line,
            width,
            initial_indent=indent,
            subsequent_indent=indent + own,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    return "\n".join(lines)


def console() -> Console:
    """Where people read."""
    from rich.console import Console  # `plugrad --help` has no use for it

    return Console(width=width_of(sys.stdout), highlight=False)


def print_json(data: object) -> None:
    """Machine-readable, as the only text on standard output."""
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False))


def print_table(
    columns: Mapping[str, bool],
    rows: Iterable[Iterable[str]],
    least: Mapping[str, int] | None = None,
) -> None:
    """A table; where the screen is too narrow for one, a paragraph for each row.

    Args:
        columns: by heading, whether cells may be broken into lines.
        least: by heading, how narrow a column may get; by default as its longest word.
    """
    cells = [list(row) for row in rows]
    screen = console()
    widths = _column_widths(columns, cells, least or {}, screen.width)
    if widths is None:
        _print_paragraphs(columns, cells)
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    has_head = any(heading.strip() for heading in columns)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=has_head)
    for heading, width in zip(columns, widths, strict=True):
        table.add_column(heading, overflow="fold", width=width)
    for row in cells:
        # As text: a schema's brackets are not markup.
        table.add_row(*map(Text, row))
    if screen.is_terminal:
        screen.print(table)
        return
    with screen.capture() as capture:
        screen.print(table)
    typer.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


def _column_widths(
    columns: Mapping[str, bool],
    cells: list[list[str]],
    least: Mapping[str, int],
    available: int,
) -> list[int] | None:
    """How wide each column is so that nothing is cut off; None if that is not possible."""
    widths, floors = [], []
    for place, (heading, may_wrap) in enumerate(columns.items()):
        texts = [heading.strip(), *(row[place] for row in cells)]
        natural = max(len(line) for text in texts for line in text.split("\n"))
        longest = max((len(word) for text in texts for word in text.split()), default=1)
        widths.append(natural)
        floors.append(least.get(heading, longest) if may_wrap else natural)
    room = available - _BETWEEN * len(columns)
    # Words of one column after the other are broken, before the table is given up.
    for limit in (_WORD, _WORD * 3 // 4, _WORD // 2):
        lowest = [
            min(floor, limit) if wraps else floor
            for floor, wraps in zip(floors, columns.values(), strict=True)
        ]
        if sum(lowest) <= room:
            break
    else:
        return None
    while sum(widths) > room:
        # The widest is narrowed first.
        place = max(range(len(widths)), key=lambda one: (widths[one] > lowest[one], widths[one]))
        widths[place] -= 1
    return widths


def _print_paragraphs(columns: Mapping[str, bool], cells: list[list[str]]) -> None:
    """Each row as lines: the first cell, and below it the others with their headings."""
    width = width_of(sys.stdout)
    for row in cells:
        first, *others = (
            (heading.strip(), text)
            for heading, text in zip(columns, row, strict=True)
            if text.strip()
        )
        typer.echo("\n" + wrapped(first[1], width))
        for heading, text in others:
            typer.echo(wrapped(f"{heading}: {text}" if heading else text, width, "  "))
    typer.echo()


def print_line(text: str = "", style: str = "", indent: str = "") -> None:
    """A line of text, or several; on a terminal they are wrapped at words.

    Args:
        style: "bold", or a colour.
        indent: what each line begins with.
    """
    colour = None if style in ("", "bold") else style
    typer.secho(wrapped(text, width_of(sys.stdout), indent), fg=colour, bold=style == "bold")


def fail(message: str, code: int = 2) -> typer.Exit:
    """Say on standard error what went wrong; raise what this returns."""
    text = wrapped(f"Error: {message}", width_of(sys.stderr))
    typer.secho(text, err=True, fg="red")
    return typer.Exit(code)
