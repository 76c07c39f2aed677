"""Copies the version from core/pyproject.toml to all other places, and checks the rules for a
release.

    python tools/release.py set 0.3.0          write the version, and the ranges that follow from it
    python tools/release.py check              say which files do not fit the version
    python tools/release.py check --tag v0.3.0     say what is missing for a release of that name

It uses only the standard library, because it runs before anything is installed. docs/releasing.md
describes how to release.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from workspace import BACKENDS, DISTRIBUTIONS, EXAMPLES, FAST, ROOT

# Folders of the distributions that are published, the core first: the others depend on it.
PUBLISHED = (*DISTRIBUTIONS, *(folder for folder, _ in (BACKENDS | FAST).values()))
# The form of a version: three numbers, and optionally a pre-release of pip's form.
VERSION = re.compile(r"(\d+\.\d+\.\d+)((?:a|b|rc|\.dev)\d+)?")
IN_PROJECT = re.compile(r'^version = ".*"$', re.MULTILINE)
IN_PACKAGE = re.compile(r'^__version__ = ".*"$', re.MULTILINE)
HEADING = re.compile(r"^## (\S+)(?: \((.*)\))?$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#)([^)\s]+)\)")


def rule_of_ranges() -> Callable[[str], str]:
    """`plugrad.plugins.releases.fitting_range`, loaded without the package, which may not be built
    yet."""
    path = ROOT / "core/plugrad/plugins/releases.py"
    spec = importlib.util.spec_from_file_location("releases", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rule: Callable[[str], str] = module.fitting_range
    return rule


def project(root: Path, folder: str) -> dict[str, Any]:
    """The table [project] of a distribution."""
    text = (root / folder / "pyproject.toml").read_text(encoding="utf-8")
    table: dict[str, Any] = tomllib.loads(text)["project"]
    return table


def current(root: Path) -> str:
    """The version, from the single place where it is set."""
    return str(project(root, "core")["version"])


def ours(root: Path) -> re.Pattern[str]:
    """A requirement on a distribution of this repository: name with extras, and range."""
    names = "|".join(re.escape(project(root, folder)["name"]) for folder in PUBLISHED)
    return re.compile(rf"((?:{names})(?:\[[\w,]+\])?)((?:[<>=!~]=?[^\"]*)?)")


def texts(root: Path, version: str) -> dict[Path, str]:
    """The required contents of files that depend on the version."""
    fitting = rule_of_ranges()(version)
    # A requirement without any range is left alone here; `problems` names it.
    requirement = re.compile(rf'"{ours(root).pattern}"')
    found = {}
    for folder in (*PUBLISHED, *EXAMPLES):
        path = root / folder / "pyproject.toml"
        text = IN_PROJECT.sub(f'version = "{version}"', path.read_text(encoding="utf-8"), count=1)
        found[path] = requirement.sub(
            lambda match: f'"{match[1]}{fitting}"' if match[2] else match[0], text
        )
        # An sdist can contain only files inside its folder.
        found[path.with_name("LICENSE")] = (root / "LICENSE").read_text(encoding="utf-8")
    # A literal, because reading the metadata would add milliseconds to every import of plugrad.
    package = root / "core/plugrad/__init__.py"
    text = package.read_text(encoding="utf-8")
    found[package] = IN_PACKAGE.sub(f'__version__ = "{version}"', text)
    return found


def problems(root: Path, tag: str = "") -> Iterator[str]:
    """The inconsistencies; with a tag, also what is missing for a release with that name."""
    version = current(root)
    parts = VERSION.fullmatch(version)
    if parts is None:
        yield f"core/pyproject.toml: {version!r} is not a version such as '0.2.0' or '0.3.0rc1'"
        return
    for path, text in texts(root, version).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield (
                f"{path.relative_to(root)} does not fit version {version}: "
                f"python tools/release.py set {version}"
            )
    for folder in (*PUBLISHED, *EXAMPLES):
        yield from problems_of(root, folder)
    heading = HEADING.search((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    if heading is None or heading[1] != parts[1]:
        yield f"CHANGELOG.md: the first heading is not '## {parts[1]} (unreleased)'"
    elif tag and not parts[2] and not re.fullmatch(r"\d{4}-\d\d-\d\d", heading[2] or ""):
        yield f"CHANGELOG.md: '## {parts[1]}' needs the day of the release, as in (2030-12-31)"
    if tag and tag != f"v{version}":
        yield f"the tag {tag} is not v{version}, the version in core/pyproject.toml"


def problems_of(root: Path, folder: str) -> Iterator[str]:
    """The problems in the metadata of one distribution."""
    metadata = project(root, folder)
    where = f"{folder}/pyproject.toml"
    requirement = ours(root)
    extras = metadata.get("optional-dependencies", {}).values()
    for wanted in (*metadata["dependencies"], *(one for extra in extras for one in extra)):
        match = requirement.fullmatch(wanted)
        # Extras of a distribution may name other extras of the same release.
        itself = wanted.startswith(f"{metadata['name']}[")
        if match is not None and not match[2] and not itself:
            yield f"{where}: {wanted!r} has no range of versions"
    python = project(root, "core")["requires-python"]
    if metadata["requires-python"] != python:
        yield f"{where}: requires-python is not {python!r}, the core's"
    if folder in PUBLISHED:
        readme = (root / folder / metadata["readme"]).read_text(encoding="utf-8")
        for link in LINK.findall(readme):
            yield f"{folder}/{metadata['readme']}: the package's page has no file {link}"


def write(root: Path, version: str) -> list[Path]:
    """Set the version; returns the changed files."""
    if VERSION.fullmatch(version) is None:
        sys.exit(f"{version!r} is not a version such as 0.3.0 or 0.3.0rc1")
    changed = []
    for path, text in texts(root, version).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8", newline="\n")
            changed.append(path)
    return changed


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description="The version, and what must hold for a release.")
    commands = parser.add_subparsers(dest="command", required=True)
    setting = commands.add_parser("set", help="write the version, and the ranges that follow")
    setting.add_argument("version")
    checking = commands.add_parser("check", help="say what does not fit")
    checking.add_argument("--tag", default="", help="the tag of a release, such as v0.3.0")
    given = parser.parse_args(arguments)
    if given.command == "set":
        for path in write(root, given.version):
            print(f"wrote {path.relative_to(root)}")
        return 0
    found = list(problems(root, given.tag))
    print("\n".join(found) or f"version {current(root)}: everything fits")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
