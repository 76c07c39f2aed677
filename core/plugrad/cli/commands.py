"""The commands by name, with their help, before their code is imported."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import typer
from typer.core import TyperCommand

from plugrad.cli.output import fail
from plugrad.plugins import get_manager
from plugrad.plugins.loading.discovery import installed_names
from plugrad.plugins.loading.published import OUR_PACKAGES, distribution_of


@dataclass(frozen=True)
class OwnCommand:
    """A command of plugrad's own.

    Attributes:
        target: "module:function", or "module:application" of a group of commands.
        help: the first line of the function's docstring.
        settings: of click.
    """

    target: str
    help: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PublishedCommand:
    """A command of a plugin that this project publishes.

    Attributes:
        plugin: the plugin's name.
        install: what to pip install.
    """

    plugin: str
    help: str
    install: str = ""

    @property
    def advice(self) -> str:
        """The command that installs it."""
        return f"pip install {self.install or distribution_of(self.plugin)}"


_REST_IS_FOR_PYTEST: Final = {"allow_extra_args": True, "ignore_unknown_options": True}

OWN: Final = {
    "backends": OwnCommand(
        "plugrad.cli.backends:backends",
        "List the installed backends and say which one is chosen, and by what.",
    ),
    "config": OwnCommand(
        "plugrad.cli.configuration:config",
        "Show the configuration with the source of each value, including defaults.",
    ),
    "certify": OwnCommand(
        "plugrad.cli.certify:certify",
        "Run the conformance kit on a backend, and print its certificate.",
        _REST_IS_FOR_PYTEST,
    ),
    "doctor": OwnCommand(
        "plugrad.cli.doctor:doctor",
        "Check the installation: versions, core, plugins, configuration, a first gradient.",
    ),
    "ops": OwnCommand(
        "plugrad.cli.operators:operators",
        "List the operators, or show one: text, derivatives, and the packages that compute it.",
    ),
    "stub": OwnCommand(
        "plugrad.cli.stub:stub",
        "Write the stub (.pyi) of a module that shows the functions of YAML files.",
    ),
    "new": OwnCommand(
        "plugrad.cli.new:app",
        "Write a package for a backend, for operators, or with kernels alone.",
    ),
}

PUBLISHED_COMMANDS: Final = {
    "demo": PublishedCommand(
        "nn", "Train a small network on real data, and show the results.", "'plugrad-nn[demo]'"
    ),
    "run": PublishedCommand("as_torch", "Run a program that was written for PyTorch."),
    "check": PublishedCommand(
        "as_torch", "List the names of PyTorch that programs use and plugrad lacks."
    ),
    "launch": PublishedCommand("distributed", "Run a program as several processes."),
}


class Deferred(TyperCommand):
    """A command as the list of commands shows it; its code is imported when it is called."""

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        return self.load().make_context(info_name, args, parent=parent, **extra)

    def load(self) -> Any:
        """The command itself."""
        name = str(self.name)
        return _own(name, OWN[name]) if name in OWN else _published(name, PUBLISHED_COMMANDS[name])


def known_commands() -> dict[str, Any]:
    """Plugrad's own commands and those of published plugins; imports no code of theirs."""
    installed = installed_names()
    named = {name: own.help for name, own in OWN.items()}
    for name, one in PUBLISHED_COMMANDS.items():
        is_there = one.plugin in installed
        named[name] = one.help if is_there else f"{one.help} To get it: {one.advice}"
    return {name: Deferred(name, help=text) for name, text in named.items()}


def other_commands() -> dict[str, Any]:
    """The commands of plugins that this project does not publish.

    Raises:
        ConfigError: the configuration, which says which plugins are used, cannot be read.
    """
    others = set(installed_names().values()) - OUR_PACKAGES
    return _added() if others else {}


def _added(plugin: str = "") -> dict[str, Any]:
    """The commands that a plugin adds; without a name, of all plugins that are not published
    here."""
    app = typer.Typer(rich_markup_mode=None)
    get_manager().extend_cli(app, plugin)
    group: Any = typer.main.get_group(app)
    return dict(group.commands)


def _own(name: str, own: OwnCommand) -> Any:
    module, _, attribute = own.target.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, context_settings=dict(own.settings))(found)
    return typer.main.get_command(app)


def _published(name: str, published: PublishedCommand) -> Any:
    """The command of a plugin; raises an error that explains why it is missing."""
    plugin = get_manager().discovered().get(published.plugin)
    if plugin is not None:
        found = _added(published.plugin).get(name)
        if found is not None:
            return found
        reason = f"is disabled by {plugin.disabled}" if plugin.disabled else ""
        reason = f"cannot be used: {plugin.problem}" if plugin.problem else reason
        raise fail(
            f"plugrad {name} is part of {plugin.origin}, which {reason or 'does not have it'}\n"
            "Run `plugrad doctor` for details."
        )
    distribution = distribution_of(published.plugin)
    raise fail(f"plugrad {name} is part of {distribution}: {published.advice}")
