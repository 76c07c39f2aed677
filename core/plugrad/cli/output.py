"""How commands answer: tables for people, JSON for programs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def console() -> Console:
    """Where people read; as wide as the terminal, and wide where there is none."""
    return Console(width=shutil.get_terminal_size((160, 24)).columns, highlight=False)


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
        least: by heading, how narrow a column may get.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading, may_wrap in columns.items():
        width = None if least is None else least.get(heading)
        table.add_column(heading, no_wrap=not may_wrap, overflow="fold", min_width=width)
    for row in rows:
        # As text: a schema's brackets are not markup.
        table.add_row(*(Text(cell) for cell in row))
    console().print(table)


def print_line(text: str = "", style: str = "") -> None:
    """A line of text, wrapped at the width of the terminal."""
    console().print(Text(text, style=style), soft_wrap=True)


def fail(message: str, code: int = 2) -> typer.Exit:
    """Say on standard error what went wrong; raise what this returns."""
    typer.secho(f"Error: {message}", err=True, fg="red")
    return typer.Exit(code)
