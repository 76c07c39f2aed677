"""Groups of commands that show whole sentences in their help."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from plugrad.cli.output import wrapped


class Group(TyperGroup):
    """A group that lists its commands with the first paragraph of their help, wrapped.

    Click would cut it at the end of the line.
    """

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        rows = {name: _first(command.help or "") for name, command in found.items() if command}
        behind = max(map(len, rows), default=0) + 2
        with formatter.section("Commands"):
            margin = " " * formatter.current_indent
            for name, text in rows.items():
                # Not click's: it breaks the names of distributions at hyphens.
                body = wrapped(text, formatter.width, margin + " " * behind)
                formatter.write(f"{margin}{name:<{behind}}{body.lstrip()}\n")


def _first(text: str) -> str:
    return " ".join(text.strip().split("\n\n")[0].split())
