"""plugrad's conformance kit on this backend, as its users run it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points


def test_the_entry_point_is_installed() -> None:
    assert "strict" in {entry.name for entry in entry_points(group="plugrad")}


def test_it_passes_the_core_level_of_the_kit() -> None:
    kit = ("--pyargs", "plugrad.testing.conformance")
    wanted = ("--plugrad-backend=strict", "--plugrad-level=core")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *kit, *wanted],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
