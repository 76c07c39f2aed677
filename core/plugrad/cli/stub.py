"""`plugrad stub`: the types of operators declared in YAML, for type checkers and editors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plugrad.cli.output import fail
from plugrad.codegen import EntryError, stubs


def stub(
    files: Annotated[list[Path], typer.Argument(help="YAML files with operators.", exists=True)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write it here, not to standard output.")
    ] = None,
) -> None:
    """Write the stub (.pyi) of a module that shows the functions of YAML files."""
    try:
        text = stubs(files)
    except EntryError as error:
        raise fail(str(error)) from None
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
