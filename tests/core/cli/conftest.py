"""The command line in a process that sees only fake distributions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from plugrad.cli.app import build_app
from plugrad.dispatch.backends.active import active_backends, deactivate_backend
from plugrad.plugins.loading.manager import PluginManager
from tests.core.plugins.conftest import cpu, manager, project, site

__all__ = ["cpu", "manager", "project", "site"]

Run = Callable[..., Any]


@pytest.fixture
def run(manager: PluginManager, project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs `plugrad` with the given arguments, in an empty project."""
    # A pipe without colours, whatever the tests run in.
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: str, input: str | None = None) -> Any:
        return CliRunner().invoke(build_app(), list(arguments), input=input)

    yield run
    for active in active_backends():
        deactivate_backend(active.name)
