"""A new package: its templates, and writing its files to disk, all or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files as resources
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Final

from plugrad.cli.new.names import ScaffoldError

# What the target may already contain: a repository that was made for the package.
ALLOWED: Final = frozenset({".git"})

# File in the package -> template. `$package` and `$name` in file names are replaced too.
COMMON: Final = {
    ".github/workflows/test.yml": "common/workflow.yml",
    ".gitignore": "common/gitignore",
    "CHANGELOG.md": "common/CHANGELOG.md",
    "$package/py.typed": "common/py.typed",
}
BACKEND: Final = {
    **COMMON,
    "README.md": "backend/README.md",
    "pyproject.toml": "backend/pyproject.toml",
    "$package/__init__.py": "backend/__init__.py",
    "$package/plugin.py": "backend/plugin.py",
    "tests/test_backend.py": "backend/test_backend.py",
    "tests/test_conformance.py": "backend/test_conformance.py",
}
OPERATORS: Final = {
    **COMMON,
    "README.md": "ops/README.md",
    "pyproject.toml": "ops/pyproject.toml",
    "$package/__init__.py": "ops/__init__.py",
    "$package/cases.py": "ops/cases.py",
    "tests/test_operators.py": "ops/test_operators.py",
    "tests/test_conformance.py": "ops/test_conformance.py",
}
KERNELS: Final = {
    **COMMON,
    "README.md": "kernels/README.md",
    "pyproject.toml": "kernels/pyproject.toml",
    "$package/__init__.py": "kernels/__init__.py",
    "$package/plugin.py": "kernels/plugin.py",
    "$package/cpu.py": "kernels/cpu.py",
    "tests/test_kernels.py": "kernels/test_kernels.py",
    "tests/test_conformance.py": "kernels/test_conformance.py",
}
LAYOUTS: Final[dict[str, dict[str, str]]] = {
    "backend/kernels": {
        **BACKEND,
        "$package/array.py": "backend_kernels/array.py",
        "$package/backend.py": "backend_kernels/backend.py",
        "$package/kernels.py": "backend_kernels/kernels.py",
    },
    "backend/namespace": {
        **BACKEND,
        "$package/backend.py": "backend_namespace/backend.py",
    },
    "kernels/cpu": KERNELS,
    "ops/yaml": {
        **OPERATORS,
        "$package/operators.py": "ops_yaml/operators.py",
        "$package/operators.yaml": "ops_yaml/operators.yaml",
        "$package/functions.py": "ops_yaml/functions.py",
        "$package/kernels/__init__.py": "ops_yaml/kernels.py",
        "$package/kernels/cpu.py": "ops_yaml/kernels_cpu.py",
        "$package/plugin.py": "ops_yaml/plugin.py",
    },
    "ops/python": {
        **OPERATORS,
        "$package/operators.py": "ops_python/operators.py",
        "$package/plugin.py": "ops_python/plugin.py",
    },
}

# The README's text about the files that the author should change.
PURPOSES: Final = {
    "$package/backend.py": "the backend: name, conversions, and its other properties",
    "$package/kernels.py": "the kernels, by operator",
    "$package/cpu.py": "kernels on NumPy arrays; add modules for other backends next to it",
    "tests/test_kernels.py": "the kernels against the backend's own",
    "$package/array.py": "the arrays, simulated with NumPy: replace them by those of your library",
    "$package/operators.yaml": "the operators: schema, derivative, who computes them",
    "$package/operators.py": "the operators as Python functions",
    "$package/functions.py": "functions that operators.yaml names: checks and composite operators",
    "$package/cases.py": "calls that plugrad's kit makes tests of",
    "$package/kernels/cpu.py": "kernels on NumPy arrays; add modules for other backends next to it",
}

# SPDX expression -> template of its text, by the spelling without case.
LICENSES: Final = {
    "apache-2.0": ("Apache-2.0", "common/Apache-2.0.txt"),
    "mit": ("MIT", "common/MIT.txt"),
    "bsd-3-clause": ("BSD-3-Clause", "common/BSD-3-Clause.txt"),
}
NO_LICENSE: Final = "none"


def render(layout: str, license: str, values: Mapping[str, str]) -> dict[str, str]:
    """The files of a package and their text.

    Args:
        layout: a key of `LAYOUTS`.
        license: a key of `LICENSES`, or "none".
        values: for the placeholders of the templates.
    """
    found = dict(LAYOUTS[layout])
    if license != NO_LICENSE:
        found["LICENSE"] = LICENSES[license][1]
    folder = resources("plugrad.cli.new") / "templates"
    table = [f"| `{path}` | {what} |" for path, what in PURPOSES.items() if path in found]
    values = {**values, "file_table": Template("\n".join(table)).substitute(values)}
    return {
        Template(path).substitute(values): _filled(folder, template, values)
        for path, template in sorted(found.items())
    }


def _filled(folder: Traversable, template: str, values: Mapping[str, str]) -> str:
    text = folder.joinpath(f"{template}.tmpl").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def refuse_existing(target: Path) -> None:
    """Raise if the target exists and is not an empty repository."""
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise ScaffoldError(f"{target} exists and is not a folder; nothing was written")
    there = sorted(entry.name for entry in target.iterdir() if entry.name not in ALLOWED)
    if there:
        shown = ", ".join(there[:3]) + (f" and {len(there) - 3} more" if len(there) > 3 else "")
        raise ScaffoldError(
            f"{target} is not empty: it has {shown}; nothing was written. "
            "Choose another --directory"
        )


def write(files: Mapping[str, str], target: Path) -> None:
    """Write a package into `target`, which must be absent or empty; what fails leaves no trace.

    Raises:
        ScaffoldError: something is in the way, or the disk refuses.
    """
    refuse_existing(target)
    made = [folder for folder in target.parents if not folder.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Beside the target, so that it gets there by renaming.
        with tempfile.TemporaryDirectory(prefix=".plugrad-new-", dir=target.parent) as scratch:
            stage = Path(scratch) / "package"
            for name, text in files.items():
                file = stage / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8", newline="\n")
            _move(stage, target)
    except OSError as error:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        raise ScaffoldError(f"{target} cannot be written: {error}") from error


def _move(stage: Path, target: Path) -> None:
    """Put a finished folder in its place, beside what is allowed to be there."""
    if not target.exists():
        stage.rename(target)
        return
    moved: list[Path] = []
    try:
        for entry in sorted(stage.iterdir()):
            place = target / entry.name
            if os.path.lexists(place):
                raise FileExistsError(f"{place} was created by another program")
            entry.rename(place)
            moved.append(place)
    except OSError:
        for place in moved:
            shutil.rmtree(place) if place.is_dir() else place.unlink()
        raise
