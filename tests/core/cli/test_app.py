"""The command line as a whole."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import typer
from typer.models import OptionInfo

from plugrad import cli
from plugrad.cli.app import build_app
from plugrad.cli.commands import OWN, PUBLISHED_COMMANDS
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


CHOICES_PLUGIN = """
    from enum import StrEnum
    from typing import Annotated
    import typer
    from plugrad.plugins import hookimpl

    class Size(StrEnum):
        SMALL = "small"
        LARGE = "large"

    @hookimpl
    def plugrad_cli(app):
        @app.command("choose")
        def choose(
            size: Annotated[Size, typer.Argument()] = Size.SMALL,
            other: Annotated[Size, typer.Option()] = Size.SMALL,
        ):
            "Choose a size."

        inner = typer.Typer()
        inner.command("size")(choose)
        inner.command("nothing")(lambda: None)
        app.add_typer(inner, name="inner")
"""


@pytest.mark.parametrize(
    ("arguments", "parameter"),
    [
        (["choose", "foo"], "size"),
        (["choose", "--other", "foo"], "--other"),
        (["inner", "size", "foo"], "size"),
    ],
)
def test_a_wrong_choice_gets_a_plain_message(
    run: Run, site: FakeSite, arguments: list[str], parameter: str
) -> None:
    site.add("plugrad-choices", "1.0", "choices", CHOICES_PLUGIN)
    result = run(*arguments)
    assert result.exit_code == 2
    *_, message = result.stderr.strip().splitlines()
    assert message.lower().startswith(f"error: invalid value for '{parameter}': 'foo' is not one ")
    assert "'small', 'large'" in message


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
    site.add("plugrad-good", "1.0", "good", DEMO_PLUGIN.replace('"demo"', '"train"'))
    assert "train     Train something." in run("--help").stdout


def test_demo_without_its_plugin_says_what_to_install(run: Run) -> None:
    result = run("demo", "--epochs", "3", "--help")
    assert result.exit_code == 2
    assert "plugrad demo is part of plugrad-nn: pip install 'plugrad-nn[demo]'" in result.stderr


def test_demo_of_a_failing_plugin_says_why(run: Run, site: FakeSite) -> None:
    site.add("plugrad-nn", "1.0", "nn", "import no_such_library")
    result = run("demo")
    assert result.exit_code == 2
    assert "plugrad-nn 1.0, which cannot be used" in result.stderr
    assert "no_such_library" in result.stderr


@pytest.mark.parametrize("absent", ["typer", "rich"])
def test_without_a_library_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, absent: str
) -> None:
    real = cli.find_spec
    monkeypatch.setattr(cli, "find_spec", lambda name: None if name == absent else real(name))
    with pytest.raises(SystemExit, match=rf"needs {absent}: pip install 'plugrad\[cli\]'"):
        cli.main()


@pytest.mark.parametrize("name", sorted(OWN))
def test_the_list_shows_the_first_line_of_a_commands_own_help(name: str) -> None:
    module, _, attribute = OWN[name].target.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    text = found.info.help if isinstance(found, typer.Typer) else found.__doc__
    first = (
        " ".join(text.strip().split("\n\n")[0].split()) if name == "new" else text.split("\n")[0]
    )
    assert first == OWN[name].help


@pytest.mark.parametrize(
    "plugin", sorted({one.plugin for one in PUBLISHED_COMMANDS.values()} | {"special", "onnx"})
)
def test_the_list_has_every_command_of_published_plugins(plugin: str) -> None:
    """Without importing a plugin: a table says what each adds."""
    listed = {name for name, one in PUBLISHED_COMMANDS.items() if one.plugin == plugin}
    module = pytest.importorskip(f"plugrad_{plugin}.plugin")
    app = typer.Typer()
    getattr(module, "plugrad_cli", lambda app: None)(app)
    added = {
        one.name or one.callback.__name__: one for one in app.registered_commands if one.callback
    }
    assert set(added) == listed
    for name, command in added.items():
        assert (command.callback.__doc__ or "").startswith(PUBLISHED_COMMANDS[name].help)


def test_a_published_command_that_is_not_installed_names_the_pip_command(run: Run) -> None:
    result = run("launch", "-n", "2", "program.py")
    assert result.exit_code == 2
    assert "pip install plugrad-distributed" in result.stderr
    shown = " ".join(run("--help").stdout.split())
    assert "To get it: pip install plugrad-distributed" in shown


def test_an_unknown_command_names_the_nearest_one(run: Run) -> None:
    assert "Did you mean 'doctor'?" in run("docter").stderr


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("command", [[], ["ops"], ["new"], ["new", "backend"], ["config"]])
def test_help_fits_the_terminal_and_cuts_no_sentence(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    width: int,
    command: list[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    # Not by CliRunner, in which every terminal is 80 columns wide.
    build_app()([*command, "--help"], prog_name="plugrad", standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if line.endswith("...") and "Usage" not in line]


HELP_ONLY = """
import sys
import plugrad.cli
sys.argv = ["plugrad", "--help"]
try:
    plugrad.cli.main()
except SystemExit:
    pass
slow = {"rich", "jax", "sklearn", "plugrad_nn", "plugrad_jax", "plugrad.cli.doctor", "yaml"}
print("imported:", sorted(slow & set(sys.modules)))
"""


def test_help_imports_no_plugin_and_no_code_of_commands() -> None:
    """That is what takes time: `plugrad --help` answers in less than 0.4 s."""
    done = subprocess.run([sys.executable, "-c", HELP_ONLY], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "imported: []", done.stderr


@pytest.mark.parametrize(
    ("words", "place", "proposed"),
    [
        ("plugrad do", 1, "doctor"),
        ("plugrad doctor --js", 2, "--json"),
        ("plugrad ops lo", 2, "log"),
    ],
)
def test_a_shell_completes(words: str, place: int, proposed: str) -> None:
    """Oracle: the request of bash's completion function, as --show-completion prints it."""
    environment = {
        **os.environ,
        "_PLUGRAD_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(place),
    }
    command = [sys.executable, "-c", "from plugrad.cli import main; main()"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert proposed in done.stdout.split(), done.stderr


@pytest.mark.parametrize("module", ["plugrad", "plugrad.cli"])
def test_the_command_can_be_run_as_a_module(module: str) -> None:
    command = [sys.executable, "-m", module, "--version"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.startswith("plugrad "), done.stderr


def test_options_have_their_flags_whatever_typer_makes_of_a_metavar() -> None:
    """Some versions of typer name an option with the metavar LEVEL `--LEVEL`."""
    commands: list[Any] = []
    for own in OWN.values():
        module, _, attribute = own.target.partition(":")
        found = getattr(importlib.import_module(module), attribute)
        group = [one.callback for one in getattr(found, "registered_commands", ())]
        commands += group or [found]
    for command in commands:
        hints = get_type_hints(command, include_extras=True)
        for name, hint in hints.items():
            for option in getattr(hint, "__metadata__", ()):
                if isinstance(option, OptionInfo) and (option.metavar or "").lower() == name:
                    # Within Annotated, what is given first is a flag, not the default.
                    assert option.default == f"--{name}", f"{command.__name__}: {name}"
