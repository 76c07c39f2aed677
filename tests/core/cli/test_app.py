"""The command line as a whole."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import get_type_hints

import pytest
from typer.models import OptionInfo

from plugrad import cli
from plugrad.cli.app import build_app
from tests.core.cli.conftest import Run
from tests.core.plugins.conftest import FakeSite

DEMO_PLUGIN = """
    from plugrad.plugins import hookimpl

    @hookimpl
    def plugrad_cli(app):
        @app.command("demo")
        def demo(backend: str = "cpu"):
            "Train something."
            from plugrad.dispatch.backends.active import find_backend
            find_backend(backend)
            print("trained on", backend)
"""


def test_help_lists_the_commands(run: Run) -> None:
    result = run("--help")
    assert result.exit_code == 0
    for command in ("backends", "demo", "doctor", "ops"):
        assert command in result.stdout


@pytest.mark.parametrize("command", ["backends", "doctor", "ops"])
def test_every_command_explains_its_options(run: Run, command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "--json" in result.stdout


def test_without_a_command_the_help_is_shown(run: Run) -> None:
    assert "backends" in run().output


def test_version(run: Run) -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("plugrad ")


def test_unknown_command_is_a_usage_error(run: Run) -> None:
    result = run("backend")
    assert result.exit_code == 2
    assert "No such command 'backend'" in result.stderr


def test_a_plugin_adds_commands(run: Run, site: FakeSite) -> None:
    site.add("plugrad-nn", "1.0", "nn", DEMO_PLUGIN)
    site.backend("alpha")
    result = run("demo", "--backend", "alpha")
    assert (result.exit_code, result.stdout) == (0, "trained on alpha\n")


def test_unknown_backend_is_explained_on_stderr_with_exit_code_2(run: Run, site: FakeSite) -> None:
    site.add("plugrad-nn", "1.0", "nn", DEMO_PLUGIN)
    site.backend("alpha", "1.2")
    result = run("demo", "--backend", "nope")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "No backend named 'nope' is installed." in result.stderr
    assert "Installed: alpha (plugrad-alpha 1.2)." in result.stderr
    assert "pip install plugrad-nope" in result.stderr
    assert "Traceback" not in result.output


def test_broken_configuration_is_explained_on_stderr_with_exit_code_2(
    run: Run, project: Path
) -> None:
    (project / "plugrad.toml").write_text("bakend = 1\n")
    result = run("backends")
    assert result.exit_code == 2
    assert "unknown key 'bakend'; did you mean 'backend'?" in result.stderr


def test_a_plugin_whose_commands_fail_does_not_disturb_the_others(run: Run, site: FakeSite) -> None:
    source = """
        from plugrad.plugins import hookimpl

        @hookimpl
        def plugrad_cli(app):
            raise OSError("no terminal")
    """
    site.add("plugrad-bad", "1.0", "bad", source)
    site.add("plugrad-nn", "1.0", "nn", DEMO_PLUGIN)
    assert "Train something." in run("--help").stdout


def test_demo_without_its_plugin_says_what_to_install(run: Run) -> None:
    result = run("demo", "--epochs", "3", "--help")
    assert result.exit_code == 2
    assert "the demo is part of plugrad-nn: pip install 'plugrad-nn[demo]'" in result.stderr


def test_demo_of_a_failing_plugin_says_why(run: Run, site: FakeSite) -> None:
    site.add("plugrad-nn", "1.0", "nn", "import no_such_library")
    result = run("demo")
    assert result.exit_code == 2
    assert "plugrad-nn 1.0, which cannot be used" in result.stderr
    assert "no_such_library" in result.stderr


def test_without_typer_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module("builtins").__import__

    def without_typer(name: str, *args: object, **kwargs: object) -> object:
        if name == "typer":
            raise ModuleNotFoundError("No module named 'typer'", name="typer")
        return real(name, *args, **kwargs)

    monkeypatch.setattr("builtins.__import__", without_typer)
    with pytest.raises(SystemExit, match=r"needs typer: pip install 'plugrad\[cli\]'"):
        cli.main()


def test_options_have_their_flags_whatever_typer_makes_of_a_metavar() -> None:
    """Some versions of typer call an option `--LEVEL` whose metavar is LEVEL."""
    app = build_app()
    commands = [*app.registered_commands]
    for group in app.registered_groups:
        assert group.typer_instance is not None
        commands += group.typer_instance.registered_commands
    for command in commands:
        assert command.callback is not None
        hints = get_type_hints(command.callback, include_extras=True)
        for name, hint in hints.items():
            for option in getattr(hint, "__metadata__", ()):
                if isinstance(option, OptionInfo) and (option.metavar or "").lower() == name:
                    # Within Annotated, what is given first is a flag, not the default.
                    assert option.default == f"--{name}", f"{command.callback.__name__}: {name}"
