"""Assembles the command line from its own commands and the plugins' commands."""

from __future__ import annotations

import contextlib
from typing import Annotated, Any

import typer

import plugrad
from plugrad.cli.commands import known_commands, other_commands
from plugrad.cli.groups import Group
from plugrad.cli.output import fail
from plugrad.errors import BackendNotFoundError, PluginError
from plugrad.plugins.config import ConfigError

HELP = """
PyTorch's automatic differentiation over any array library.

Array libraries are backends that pip installs. The one that is used is chosen by `device=` in code,
`plugrad.set_default_device`, `PLUGRAD_BACKEND` in the environment, or `backend = "..."` in
plugrad.toml or the [tool.plugrad] table of pyproject.toml.
"""

# What some versions of typer put before a message, as they check values with pydantic.
PYDANTIC = "Value error, "

# Lines of help get no longer than this, however wide the terminal is.
MOST_COLUMNS = 100


class Commands(Group):
    """The commands. Code is imported when a command is called, so that `--help` is quick.

    Turns what a user can put right into one message and exit code 2, without a traceback.
    """

    _knows_all = False

    def list_commands(self, ctx: Any) -> list[str]:
        # The command that runs reports a configuration that cannot be used.
        with contextlib.suppress(ConfigError):
            self._ask_plugins()
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        self._list_known()
        if cmd_name not in self.commands:
            self._ask_plugins()
        return self.commands.get(cmd_name)

    def _list_known(self) -> None:
        if not self.commands:
            self.commands = known_commands()

    def _ask_plugins(self) -> None:
        self._list_known()
        if not self._knows_all:
            self._knows_all = True
            self.commands = {**other_commands(), **self.commands}

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (BackendNotFoundError, PluginError, ConfigError) as error:
            raise fail(str(error)) from None
        except typer.BadParameter as error:
            error.message = error.message.removeprefix(PYDANTIC)
            raise


def build_app() -> typer.Typer:
    """The whole command line."""
    app = typer.Typer(
        name="plugrad",
        cls=Commands,
        help=HELP,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={
            "help_option_names": ["-h", "--help"],
            "max_content_width": MOST_COLUMNS,
        },
    )
    app.callback()(_options)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"plugrad {plugrad.__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Options of the command itself; its help is the application's."""
