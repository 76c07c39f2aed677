"""What `make dist` notices: files that an sdist or a wheel lacks, has too much, or has changed.

`make packages` runs it on the distributions themselves.
"""

from __future__ import annotations

import importlib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def dist() -> ModuleType:
    return importlib.import_module("dist")


def wheel(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def tree(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


SOURCES = ("pyproject.toml", "LICENSE", "foo/__init__.py", "foo/data.yaml")


def test_an_sdist_has_the_sources_and_what_setuptools_adds(
    dist: ModuleType, tmp_path: Path
) -> None:
    folder = tree(tmp_path / "here", *SOURCES, "tests/test_foo.py", "build/x", "foo/__pycache__/x")
    packed = tree(tmp_path / "there", *SOURCES, "PKG-INFO", "setup.cfg", "foo.egg-info/SOURCES.txt")
    assert list(dist.missing_sources(folder, packed)) == []


def test_files_that_an_sdist_lacks_or_has_too_much_are_told(
    dist: ModuleType, tmp_path: Path
) -> None:
    folder = tree(tmp_path / "here", *SOURCES)
    packed = tree(tmp_path / "there", *SOURCES[:-1], "foo/_generated/x.py")
    assert list(dist.missing_sources(folder, packed)) == [
        "the sdist lacks foo/data.yaml",
        "the sdist has foo/_generated/x.py, which is no source",
    ]


def test_how_a_core_was_built_makes_no_difference(dist: ModuleType, tmp_path: Path) -> None:
    pure = wheel(tmp_path / "a.whl", {"p/a.py": "1", "p-1.dist-info/WHEEL": "py3-none-any"})
    files = {"p/a.py": "1", "p/a.cpython-313-darwin.so": "x", "p-1.dist-info/WHEEL": "cp313"}
    assert list(dist.differences(pure, wheel(tmp_path / "b.whl", files))) == []


def test_files_in_which_wheels_differ_are_told(dist: ModuleType, tmp_path: Path) -> None:
    found = wheel(tmp_path / "a.whl", {"p/a.py": "1", "p/b.py": "1", "p/c.py": "1"})
    wanted = wheel(tmp_path / "b.whl", {"p/a.py": "1", "p/b.py": "2", "p/d.yaml": "1"})
    assert list(dist.differences(found, wanted)) == [
        "the wheel lacks p/d.yaml",
        "the wheel has p/c.py too much",
        "p/b.py differs",
    ]
