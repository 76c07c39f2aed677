"""New packages in a folder, as if they had been installed from there."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# `plugrad new` for every style: the command and its options.
STYLES = {
    "kernels": ("backend", "--style", "kernels", "--license", "Apache-2.0"),
    "namespace": ("backend", "--namespace", "array_api_strict", "--license", "MIT"),
    "others": ("kernels", "--license", "MIT"),
    "python": ("ops", "--style", "python", "--license", "MIT"),
    "yaml": ("ops", "--style", "yaml", "--license", "BSD-3-Clause"),
}


@dataclass(frozen=True)
class Scaffold:
    """A generated package."""

    name: str
    package: str
    folder: Path

    def install(self) -> None:
        """What `pip install --editable` leaves: metadata that the import system finds."""
        info = self.folder / f"{self.package}-0.1.0.dist-info"
        info.mkdir()
        name = self.package.replace("_", "-")
        (info / "METADATA").write_text(f"Name: {name}\nVersion: 0.1.0\n")
        project = tomllib.loads((self.folder / "pyproject.toml").read_text())["project"]
        lines = [
            line
            for group, entries in project["entry-points"].items()
            for line in (f"[{group}]", *(f"{name} = {to}" for name, to in entries.items()))
        ]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """A Python command in the package's folder, which is on the path."""
        paths = [str(self.folder), os.environ.get("PYTHONPATH", "")]
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths).strip(os.pathsep)}
            | environment,
            capture_output=True,
            text=True,
            check=False,
        )


def scaffold(
    run: Callable[..., Any], style: str, folder: Path, name: str = "", distribution: str = ""
) -> Scaffold:
    """A package of one of the `STYLES`, installed."""
    command, *options = STYLES[style]
    name = name or f"zz_{style}"
    distribution = distribution or f"plugrad-zz-{style}"
    options += ["--distribution", distribution, "--directory", str(folder), "--yes"]
    result = run("new", command, name, *options)
    assert result.exit_code == 0, result.output
    made = Scaffold(name, distribution.replace("-", "_"), folder)
    made.install()
    return made
