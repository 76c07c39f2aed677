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
    """Machine-readable, on standard output and nothing beside it."""
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False))


def print_table(
    columns: Mapping[str, bool],
    rows: Iterable[Iterable[str]],
    least: Mapping[str, int] | None = None,
) -> None:
    """A table.

    Args:
        columns: by heading, whether cells may be broken into lines.
        least: by heading, how narrow a column may get; by default as its longest word.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    cells = [list(row) for row in rows]
    has_head = any(heading.strip() for heading in columns)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=has_head)
    for place, (heading, may_wrap) in enumerate(columns.items()):
        words = [word for row in cells for word in row[place].split()]
        longest = min(_WORD, max(map(len, words), default=1))
        width = longest if least is None or heading not in least else least[heading]
        table.add_column(
            heading, no_wrap=not may_wrap, overflow="fold", min_width=width if may_wrap else None
        )
    for row in cells:
        # As text: a schema's brackets are not markup.
        table.add_row(*map(Text, row))
    screen = console()
    if screen.is_terminal:
        screen.print(table)
        return
    with screen.capture() as capture:
        screen.print(table)
    typer.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))


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
