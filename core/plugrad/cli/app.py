"""Puts the command line together: its own commands, and those of the plugins."""

from __future__ import annotations

import contextlib
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from plugrad.cli.backends import backends
from plugrad.cli.certify import certify
from plugrad.cli.configuration import config
from plugrad.cli.doctor import core_version, doctor
from plugrad.cli.new import app as new
from plugrad.cli.operators import operators
from plugrad.cli.output import fail
from plugrad.cli.stub import stub
from plugrad.errors import BackendNotFoundError, PluginError
from plugrad.plugins import get_manager
from plugrad.plugins.config import ConfigError

HELP = """
Reverse-mode automatic differentiation with PyTorch's semantics over any array library.

Array libraries are backends that pip installs. The one that is used is chosen by `device=` in code,
`plugrad.set_default_device`, `PLUGRAD_BACKEND` in the environment, or `backend = "..."` in
plugrad.toml or the [tool.plugrad] table of pyproject.toml.
"""


class _Group(TyperGroup):
    """Turns what a user can put right into one message and exit code 2, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (BackendNotFoundError, PluginError, ConfigError) as error:
            raise fail(str(error)) from None


def build_app() -> typer.Typer:
    """The whole command line; loads the installed plugins, which may add commands."""
    app = typer.Typer(
        name="plugrad",
        cls=_Group,
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="markdown",
        pretty_exceptions_show_locals=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    app.command("backends")(backends)
    app.command("config")(config)
    app.command(
        "certify", context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
    )(certify)
    app.command("doctor")(doctor)
    app.command("ops")(operators)
    app.command("stub")(stub)
    app.add_typer(new, name="new")
    # A configuration that cannot be used is reported by the command that uses it.
    with contextlib.suppress(ConfigError):
        get_manager().extend_cli(app)
    if not any(command.name == "demo" for command in app.registered_commands):
        _add_missing_demo(app)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"plugrad {core_version()}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Options of the command itself; its help is that of the application."""


def _add_missing_demo(app: typer.Typer) -> None:
    """Without plugrad-nn there is no demo; people who try it should learn how to get it."""

    @app.command(
        "demo",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
    def demo() -> None:
        """Train a classifier of handwritten digits (part of plugrad-nn, not installed)."""
        plugin = get_manager().discovered().get("nn")
        if plugin is not None and plugin.problem:
            raise fail(
                f"the demo is part of {plugin.origin}, which cannot be used: {plugin.problem}\n"
                "Run `plugrad doctor` for details."
            )
        raise fail("the demo is part of plugrad-nn: pip install 'plugrad-nn[demo]'")
