"""The README's code runs and prints what it shows, as a reader would type it; it stays short."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.docs import pages

README = pages.ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")


def project(folder: str) -> dict[str, object]:
    """The metadata of a distribution."""
    found = tomllib.loads((pages.ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))
    return dict(found["project"])


def test_code_runs() -> None:
    with pages.typed_into("readme") as module:
        blocks = pages.run(README, module)
    assert sum(block.code.count(">>> ") for block in blocks) >= 5


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#:]+)", TEXT) + re.findall(r'src="([^"]+)"', TEXT)
    assert links
    for link in links:
        assert (README.parent / link).exists(), link


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) < 65


def test_what_it_installs_is_there_and_brings_the_command_line() -> None:
    (line,) = re.findall(r"^pip install .*", TEXT, re.MULTILINE)
    folders = re.findall(r"\./([a-z_/]+)", line)
    assert len(folders) > 1
    for folder in folders:
        assert (pages.ROOT / folder / "pyproject.toml").is_file(), folder
    assert "core[cli," in line


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_the_pythons_are_those_that_wheels_are_built_for(version: str) -> None:
    core = tomllib.loads((pages.ROOT / "core" / "pyproject.toml").read_text(encoding="utf-8"))
    assert version in TEXT
    assert f"cp{version.replace('.', '')}-*" in core["tool"]["cibuildwheel"]["build"]


def test_the_oldest_python_and_numpy_are_those_of_the_core() -> None:
    core = project("core")
    assert core["requires-python"] == ">=3.11"
    assert "Python 3.11 and later" in TEXT
    assert "numpy>=2.1" in str(core["dependencies"])
    assert "| NumPy | 2.1 and later |" in TEXT
