"""How .venv is made, whatever the Python that makes it has."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest


def folder_of(environment: Path) -> Path:
    """Where an environment has its programs."""
    return environment / ("Scripts" if sys.platform == "win32" else "bin")


@pytest.mark.parametrize("has_pip", [True, False])
def test_the_environment_has_pip(
    has_pip: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import workspace

    made = tmp_path / "made"
    monkeypatch.setattr(workspace, "VENV", made)
    monkeypatch.setattr(workspace, "PYTHON", folder_of(made) / "python")
    if not has_pip:
        venv.create(tmp_path / "bare", with_pip=False)
        monkeypatch.setattr(sys, "executable", str(folder_of(tmp_path / "bare") / "python"))
    workspace.make_venv()
    version = [str(workspace.PYTHON), "-m", "pip", "--version"]
    shown = subprocess.run(version, capture_output=True, text=True, check=True).stdout
    assert shown.startswith("pip ")
    assert str(made) in shown
