"""The version and the ranges that follow from it fit in this repository, and a misfit is found."""

from __future__ import annotations

import importlib
import re
import shutil
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import plugrad

ROOT = Path(__file__).resolve().parents[2]
ANY_TAG = re.compile(r"## (\S+) \(.*\)")


@pytest.fixture
def release() -> ModuleType:
    return importlib.import_module("release")


@pytest.fixture
def copy(tmp_path: Path, release: ModuleType) -> Path:
    """What of the repository a version is written to."""
    names = ["CHANGELOG.md", "LICENSE", "core/plugrad/__init__.py"]
    for folder in (*release.PUBLISHED, *release.EXAMPLES):
        names += [f"{folder}/{name}" for name in ("LICENSE", "README.md", "pyproject.toml")]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def project(folder: Path) -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return table


def test_everything_fits_the_version(release: ModuleType) -> None:
    assert list(release.problems(ROOT)) == []


def test_plugrad_says_the_version(release: ModuleType) -> None:
    assert plugrad.__version__ == release.current(ROOT)


@pytest.mark.parametrize("version", ["7.1.0", "0.9.2", "0.9.0rc1"])
def test_a_version_is_written_everywhere(release: ModuleType, copy: Path, version: str) -> None:
    assert release.main(["set", version], copy) == 0
    assert f'__version__ = "{version}"' in (copy / "core/plugrad/__init__.py").read_text()
    for folder in (*release.PUBLISHED, *release.EXAMPLES):
        metadata = project(copy / folder)
        assert metadata["version"] == version
        extras = metadata.get("optional-dependencies", {}).values()
        for text in (*metadata["dependencies"], *(one for extra in extras for one in extra)):
            wanted = Requirement(text)
            if not wanted.name.startswith("plugrad") or wanted.name == metadata["name"]:
                continue
            # Oracle: what a release has to mean for pip.
            fits, major = wanted.specifier.contains, Version(version).major
            assert fits(version, prereleases=True)
            assert not fits("0.8.9", prereleases=True)
            assert not fits(f"{major + 1}.0.0", prereleases=True)
            assert fits(f"{major}.10.0") is (major > 0)


def test_setting_the_version_again_changes_nothing(release: ModuleType, copy: Path) -> None:
    assert release.write(copy, release.current(copy)) == []


@pytest.mark.parametrize("version", ["1", "1.2", "v1.2.3", "1.2.3-beta", "1.2.3.4"])
def test_what_is_no_version_is_refused(release: ModuleType, copy: Path, version: str) -> None:
    with pytest.raises(SystemExit, match="is not a version such as"):
        release.write(copy, version)


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("plugins/nn/pyproject.toml", '\nversion = "', '\nversion = "9', "does not fit version"),
        ("backends/cpu/pyproject.toml", '"plugrad>=', '"plugrad>=9', "does not fit version"),
        ("core/plugrad/__init__.py", '__version__ = "', '__version__ = "9', "does not fit version"),
        ("backends/jax/LICENSE", "Apache", "Another", "LICENSE does not fit version"),
        (
            "core/pyproject.toml",
            '"typer>=',
            '"plugrad-jax", "typer>=',
            "'plugrad-jax' has no range",
        ),
        ("plugins/special/pyproject.toml", '">=3.11"', '">=3.12"', "requires-python is not"),
        ("backends/cuda/README.md", "# plugrad-cuda", "[x](../x.md)", "page has no file ../x.md"),
        ("CHANGELOG.md", "\n## ", "\n## 9", "the first heading is not '## "),
        ("core/pyproject.toml", '\nversion = "', '\nversion = "v', "is not a version such as"),
    ],
)
def test_a_misfit_is_told(
    release: ModuleType, copy: Path, name: str, old: str, new: str, told: str
) -> None:
    change(copy / name, old, new)
    found = list(release.problems(copy))
    assert len(found) == 1
    assert told in found[0]
    assert release.main(["check"], copy) == 1


def test_a_tag_has_to_be_the_version(release: ModuleType, copy: Path) -> None:
    release.write(copy, "0.9.0")
    heading = ANY_TAG.search((copy / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert heading is not None
    change(copy / "CHANGELOG.md", heading[0], "## 0.9.0 (2030-12-31)")
    assert list(release.problems(copy, "v0.9.0")) == []
    (problem,) = release.problems(copy, "v0.9.1")
    assert problem == "the tag v0.9.1 is not v0.9.0, the version in core/pyproject.toml"


def test_a_release_has_a_day_and_a_candidate_needs_none(release: ModuleType, copy: Path) -> None:
    release.write(copy, "0.9.0rc1")
    heading = ANY_TAG.search((copy / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert heading is not None
    change(copy / "CHANGELOG.md", heading[0], "## 0.9.0 (unreleased)")
    assert list(release.problems(copy, "v0.9.0rc1")) == []
    release.write(copy, "0.9.0")
    (problem,) = release.problems(copy, "v0.9.0")
    assert problem.startswith("CHANGELOG.md: '## 0.9.0' needs the day of the release")


def test_wheels_are_built_for_every_python_that_the_core_names() -> None:
    table = tomllib.loads((ROOT / "core/pyproject.toml").read_text())
    prefix = "Programming Language :: Python :: 3."
    named = {one.removeprefix(prefix) for one in table["project"]["classifiers"] if prefix in one}
    for folder in ("core", "plugins/native"):
        build = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["tool"][
            "cibuildwheel"
        ]
        assert named == {one.removeprefix("cp3").partition("-")[0] for one in build["build"]}
    assert min(named) == table["project"]["requires-python"].removeprefix(">=3.")


def test_the_workflow_knows_how_many_files_there_are(release: ModuleType) -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    systems = len(jobs["wheels"]["strategy"]["matrix"]["os"])
    pythons = len(jobs["try-pure"]["strategy"]["matrix"]["python"])
    count = next(step["run"] for step in jobs["publish"]["steps"] if "wc -l" in step.get("run", ""))
    sdists, wheels = (int(number) for number in re.findall(r"-eq (\d+)", count))
    assert sdists == len(release.PUBLISHED)
    compiled = sum("cibuildwheel --" in step.get("run", "") for step in jobs["wheels"]["steps"])
    assert wheels == len(release.PUBLISHED) + systems * pythons * compiled
