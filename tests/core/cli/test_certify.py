"""`plugrad certify` runs pytest with the kit's options, and says what it lacks."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would be run; it ends with code 3."""
    found: list[list[str]] = []

    def note(command: list[str], check: bool) -> Any:
        found.append(command)
        return SimpleNamespace(returncode=3)

    monkeypatch.setattr(subprocess, "run", note)
    return found


@pytest.mark.usefixtures("cpu")
def test_it_runs_pytest_and_ends_with_its_code(run: Run, commands: list[list[str]]) -> None:
    arguments = ("--level", "core", "--report", "a.json", "--report", "b.html", "-x", "-k", "exp")
    done = run("certify", "cpu", *arguments)
    assert done.exit_code == 3
    (command,) = commands
    assert command[:3] == [sys.executable, "-m", "pytest"]
    assert "plugrad.testing.conformance" in command
    wanted = "--plugrad-backend=cpu --plugrad-level=core --plugrad-report=a.json"
    assert f"{wanted} --plugrad-report=b.html -x -k exp" in " ".join(command)


@pytest.mark.usefixtures("cpu")
def test_without_pytest_it_says_what_to_install(
    run: Run, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "pytest" else find(name, *a)
    )
    done = run("certify", "cpu")
    assert done.exit_code == 1
    assert "pip install 'plugrad[testing]'" in done.stderr
    assert commands == []


def test_a_backend_that_is_not_there_is_told_at_once(run: Run, commands: list[list[str]]) -> None:
    done = run("certify", "nowhere")
    assert done.exit_code == 2
    assert "No backend named 'nowhere' is installed" in done.stderr
    assert commands == []


@pytest.mark.usefixtures("cpu")
def test_an_unknown_level_is_refused(run: Run, commands: list[list[str]]) -> None:
    done = run("certify", "cpu", "--level", "best")
    assert done.exit_code == 2
    assert "--level must be core or full" in done.stderr
    assert commands == []
