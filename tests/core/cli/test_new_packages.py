"""Packages that `plugrad new` writes pass their own tests and the checkers that they require."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.core.cli.conftest import Run
from tests.core.cli.scaffolds import STYLES, scaffold

# A checker that follows plugrad's import of optree reads PyTorch and JAX, where they are installed.
BESIDE_THE_POINT = """
[[tool.mypy.overrides]]
module = ["optree.*"]
follow_imports = "skip"
"""

every_style = pytest.mark.parametrize("style", STYLES)


@pytest.mark.long
@every_style
def test_the_package_passes_its_own_tests(run: Run, tmp_path: Path, style: str) -> None:
    """`make packages` runs them too, on a package that is built and installed."""
    made = scaffold(run, style, tmp_path / "made")
    # The kit takes minutes for a backend; `make packages` runs it on these.
    options = ["--ignore", "tests/test_conformance.py"] if STYLES[style][0] == "backend" else []
    result = made.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *options)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("length", [(2, 1), (30, 40)], ids=["short", "long"])
@every_style
def test_the_code_is_clean(run: Run, tmp_path: Path, style: str, length: tuple[int, int]) -> None:
    name, distribution = ("z" * count for count in length)
    made = scaffold(run, style, tmp_path / "made", name, distribution)
    for command in (("check", "."), ("format", "--diff", ".")):
        result = made.run("-m", "ruff", *command, "--no-cache")
        assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
def test_the_code_is_typed(run: Run, tmp_path: Path) -> None:
    for style in STYLES:
        made = scaffold(run, style, tmp_path / style)
        with (made.folder / "pyproject.toml").open("a") as settings:
            settings.write(BESIDE_THE_POINT)
        tests = sorted(str(path) for path in (made.folder / "tests").glob("*.py"))
        for what in (("-p", made.package), tests):
            result = made.run("-m", "mypy", "--cache-dir", str(tmp_path / "cache"), *what)
            assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
@every_style
def test_the_doctor_finds_the_plugin_healthy(run: Run, tmp_path: Path, style: str) -> None:
    made = scaffold(run, style, tmp_path / "made")
    result = made.run("-m", "plugrad.cli", "doctor", "--json")
    # A package with nothing but kernels is called by its distribution.
    assert any(f'"{name}"' in result.stdout for name in (made.name, f"plugrad-zz-{style}"))
    assert '"problems": []' in result.stdout


@every_style
def test_the_project_file_names_the_plugin(run: Run, tmp_path: Path, style: str) -> None:
    made = scaffold(run, style, tmp_path / "made")
    project = tomllib.loads((made.folder / "pyproject.toml").read_text())["project"]
    assert project["name"] == f"plugrad-zz-{style}"
    group, name = "plugrad", made.name
    if style == "others":
        group, name = "plugrad.kernels", "plugrad"
    assert project["entry-points"] == {group: {name: f"{made.package}.plugin"}}
    assert project["license"] in (made.folder / "README.md").read_text()


@every_style
def test_the_readme_names_files_that_are_there(run: Run, tmp_path: Path, style: str) -> None:
    made = scaffold(run, style, tmp_path / "made")
    table = (made.folder / "README.md").read_text().split("## What is where")[1]
    named = [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")]
    assert len(named) >= 3
    for path in named:
        assert (made.folder / path).exists(), path


@every_style
def test_nothing_is_left_to_fill_in(run: Run, tmp_path: Path, style: str) -> None:
    made = scaffold(run, style, tmp_path / "made")
    for path in made.folder.rglob("*"):
        # The workflow has placeholders of GitHub's own.
        if path.is_file() and path.suffix != ".yml":
            assert "$" not in path.read_text(), path
