"""plugrad-as-torch is an optional part of the workspace, as for its users. What installs the hook
runs in a process of its own: in this one, PyTorch may be the oracle."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("plugrad_as_torch", reason="plugrad-as-torch is not installed")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """`run("-m", "plugrad.as_torch", ...)` runs Python in an empty folder."""

    def python(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "ignore", *words]
        # Of plugins of pytest, only the one that is tried.
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=120, env=environment
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return python
