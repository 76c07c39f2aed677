"""`plugrad run` and `plugrad check`."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import Annotated, Final

import typer

from plugrad_as_torch.checking import Lack, files_of, lacking
from plugrad_as_torch.running import USAGE
from plugrad_as_torch.running import run as run_program

_COMMAND: Final = "plugrad run"
# The modules that start a program.
_STARTING: Final = ("plugrad_as_torch.running", "runpy")


def add_to(app: typer.Typer) -> None:
    """Add the commands to plugrad's."""
    # Options after the program's name belong to the program.
    as_given = {
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
    }
    app.command("run", add_help_option=False, context_settings=as_given)(run)
    app.command("check")(check)


def run(context: typer.Context) -> None:
    """Run a program that was written for PyTorch.

    SCRIPT, or -m MODULE, and its arguments.
    """
    words = context.args
    if words[:1] in (["-h"], ["--help"]):
        typer.echo(USAGE.format(command=_COMMAND))
        return
    try:
        run_program(words, _COMMAND)
    except Exception as error:
        # As Python prints it; typer would show the code around each line, including its own code.
        traceback.print_exception(error.with_traceback(_of_program(error.__traceback__)))
        raise typer.Exit(1) from None


def _of_program(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from where the program begins."""
    while trace is not None and trace.tb_frame.f_code is not run_program.__code__:
        trace = trace.tb_next
    while trace is not None and trace.tb_frame.f_globals.get("__name__") in _STARTING:
        trace = trace.tb_next
    return trace


def check(
    programs: Annotated[
        list[str], typer.Argument(help="Files, folders, or packages that can be imported.")
    ],
) -> None:
    """List the names of PyTorch that programs use and plugrad lacks.

    It does not run them.

    The exit code is 1 if there are any. It does not check methods of tensors, names that a program
    tests with `hasattr`, or imports in a `try` that catches the error.
    """
    try:
        files = [file for program in programs for file in files_of(program)]
        found = list(lacking(files))
    except (FileNotFoundError, SyntaxError, UnicodeDecodeError) as error:
        typer.secho(f"Error: {error}", err=True, fg="red")
        raise typer.Exit(2) from None
    if found:
        _show(found)
    names = len({lack.name for lack in found})
    typer.echo(f"{_counted(len(files), 'file')}, {_counted(names, 'name')} that plugrad lacks")
    if found:
        raise typer.Exit(1)


def _show(found: Sequence[Lack]) -> None:
    if importlib.util.find_spec("rich") is None:
        for lack in found:
            typer.echo(f"{_place(lack)}: {lack.name}{f': {lack.note}' if lack.note else ''}")
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("where", overflow="fold")
    table.add_column("name", no_wrap=True)
    table.add_column("instead", overflow="fold")
    for lack in found:
        table.add_row(*(Text(cell) for cell in (_place(lack), lack.name, lack.note)))
    console = Console(highlight=False)
    Console(width=max(console.width, 120), highlight=False).print(table)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _place(lack: Lack) -> str:
    """The file, then its lines: `model.py:3, 8`."""
    return f"{lack.file}:{', '.join(map(str, lack.lines))}"
