"""The files of a release: an sdist and wheels of every distribution, in dist/, checked.

    python tools/dist.py                  `make dist`: everything, the core compiled and pure
    python tools/dist.py --check FOLDER   without compiling, into FOLDER; part of `make packages`

Every wheel is built from its sdist, unpacked outside of the checkout. The sdist is compared with
the sources, and the wheel with one built from the checkout. `twine check --strict` checks the
metadata of all of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import release
from workspace import BUILD_WHEEL, PYTHON, ROOT, Workspace, say, sources

BUILD_SDIST = BUILD_WHEEL.replace("build_wheel", "build_sdist")
# Files that setuptools adds to an sdist, and files of a distribution's folder that do not belong in
# one.
ADDED = ("PKG-INFO", "setup.cfg")
LEFT_OUT = ("tests",)
# Built files that an sdist contains, because users who install from it may have no Node.js.
BUILT_IN = ("plugrad_viewer/_page/",)
# They depend on how the core was built.
OF_THE_BUILD = ("/WHEEL", "/RECORD", "/top_level.txt", ".so", ".pyd")


def build(script: str, target: Path, folder: Path, pure: bool) -> Path:
    """Build in a folder with the setuptools of .venv; returns the one new file in `target`."""
    target.mkdir(parents=True, exist_ok=True)
    before = set(target.iterdir())
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "PLUGRAD_"))
    }
    environment["PLUGRAD_PURE"] = "1" if pure else ""
    command = [str(PYTHON), "-c", script, str(target)]
    subprocess.run(command, cwd=folder, env=environment, check=True)
    (made,) = set(target.iterdir()) - before
    return made


def sdist_of(folder: Path, target: Path) -> Path:
    """Build the sdist of a distribution, in a copy of its folder.

    setuptools puts it together beside the sources, where ruff and others would come across it.
    """
    with tempfile.TemporaryDirectory(prefix="plugrad-sources-") as temporary:
        leave = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
        copy = shutil.copytree(folder, Path(temporary) / folder.name, ignore=leave)
        return build(BUILD_SDIST, target, copy, pure=True)


def unpacked(sdist: Path, folder: Path) -> Path:
    """The sdist's own folder, after unpacking it here."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return folder / sdist.name.removesuffix(".tar.gz")


def missing_sources(folder: Path, tree: Path) -> Iterator[str]:
    """The differences between an unpacked sdist and the folder of its distribution."""
    written = {path.relative_to(folder).as_posix() for path in sources(folder)}
    written = {name for name in written if name.partition("/")[0] not in LEFT_OUT}
    packed = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}
    packed = {name for name in packed if ".egg-info/" not in name and name not in ADDED}
    packed = {name for name in packed if not name.startswith(BUILT_IN)}
    yield from (f"the sdist lacks {name}" for name in sorted(written - packed))
    yield from (f"the sdist has {name}, which is no source" for name in sorted(packed - written))


def members(wheel: Path) -> dict[str, int]:
    """The files in a wheel that do not depend on how it was built, and their checksums."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            info.filename: info.CRC
            for info in archive.infolist()
            if not info.filename.endswith(OF_THE_BUILD)
        }


def differences(wheel: Path, expected: Path) -> Iterator[str]:
    """The differences between a wheel and another one from the same sources."""
    found, wanted = members(wheel), members(expected)
    yield from (f"the wheel lacks {name}" for name in sorted(wanted.keys() - found.keys()))
    yield from (f"the wheel has {name} too much" for name in sorted(found.keys() - wanted.keys()))
    for name in sorted(found.keys() & wanted.keys()):
        if found[name] != wanted[name]:
            yield f"{name} differs"


def make(workspace: Workspace, target: Path, modes: Sequence[str]) -> list[str]:
    """Build everything into a folder; returns the problems.

    Args:
        modes: how the core is built, compiled or interpreted.
    """
    found = []
    for folder in release.PUBLISHED:
        say(f"{folder}: an sdist, and what it makes elsewhere")
        sdist = sdist_of(ROOT / folder, target)
        wanted = workspace.wheel(folder, workspace.mode())
        for mode in modes if folder == "core" else ["interpreted"]:
            with tempfile.TemporaryDirectory(prefix="plugrad-sdist-") as temporary:
                tree = unpacked(sdist, Path(temporary))
                wrong = list(missing_sources(ROOT / folder, tree))
                wheel = build(BUILD_WHEEL, target, tree, pure=mode == "interpreted")
            wrong += differences(wheel, wanted)
            if mode == "interpreted" and not wheel.name.endswith("-py3-none-any.whl"):
                wrong.append("it is for one system, and should be for all")
            if mode == "compiled" and wheel.name.endswith("-none-any.whl"):
                wrong.append("it was to be compiled, and is not")
            print(f"    {wheel.name}, {wheel.stat().st_size // 1024} KiB", flush=True)
            found += [f"{folder}: {wheel.name}: {one}" for one in wrong]
    return found


def main(arguments: Sequence[str]) -> int:
    found = list(release.problems(ROOT))
    workspace = Workspace()
    workspace.require_building()
    if arguments[:1] == ["--check"]:
        target, twine, modes = Path(arguments[1]), sys.executable, ["interpreted"]
    else:
        workspace.group("release")
        target, twine = ROOT / "dist", str(PYTHON)
        modes = ["compiled", "interpreted"] if workspace.mode() == "compiled" else ["interpreted"]
        shutil.rmtree(target, ignore_errors=True)
    found += make(workspace, target, modes)
    files = sorted(str(path) for path in target.iterdir())
    say(f"twine check --strict, of {len(files)} files")
    command = [twine, "-m", "twine", "--no-color", "check", "--strict", *files]
    if subprocess.call(command):
        found.append("twine check: see above")
    print("\n".join(found) or f"{target}: {len(files)} files, all as they should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
