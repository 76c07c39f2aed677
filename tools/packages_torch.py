"""Runs unchanged packages that were written for PyTorch, and their own tests:
`python tools/packages_torch.py [NAME...]`.

Each program of tests/packages_torch/programs runs with `torch` as plugrad and, if PyTorch is
installed (ORACLE=torch), with PyTorch in another process; the numbers are compared. Without names,
it writes docs/packages.md. requirements.txt and suites.toml beside the programs list the packages
and versions; PyTorch is not among them.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import math
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "tests" / "packages_torch"
BUILD = ROOT / "build" / "packages_torch"
PAGE = ROOT / "docs" / "packages.md"
# The digits that must agree after some steps of training in float32; with fewer, a program fails.
ENOUGH = 4.0
# Below this, relative to the largest number, PyTorch's own result may be rounding error.
NOISE = 1e-6
TIMEOUT = 600

HEAD = """\
# Packages that run unchanged

These packages from PyPI are written for PyTorch. Each is installed unchanged and runs a small
program: it builds, computes forward and backward, and takes steps of an optimizer. With the same
seed, the same program runs on PyTorch itself, in another process, and all its numbers are
compared: outputs, losses, gradients and the parameters at the end. *Digits* says how many decimal
digits agree at least; float32 has seven. This page is written by `make packages-torch
ORACLE=torch`; the programs are in `tests/packages_torch/programs`.

| package | version | what was run | digits |
|---|---|---|---|
"""
SUITES = """
## Their own tests

The tests that come with a package run under `pytest -p plugrad.as_torch`, each with the same seed.

| package | version | passed | failed | left out, and why |
|---|---|---|---|---|
"""


def pins() -> dict[str, str]:
    """Name and version of each package in requirements.txt."""
    lines = (HOME / "requirements.txt").read_text().splitlines()
    found = (line.split("==") for line in lines if "==" in line)
    return {name.strip(): version.strip() for name, version in found}


def installed() -> Path:
    """A folder with the packages, and without PyTorch."""
    text = (HOME / "requirements.txt").read_bytes()
    folder = BUILD / f"site-{hashlib.sha256(text).hexdigest()[:12]}"
    if not folder.exists():
        partial = folder.with_suffix(".partial")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
        subprocess.run([*command, str(partial), "-r", str(HOME / "requirements.txt")], check=True)
        partial.rename(folder)
    return folder


def environment(*more: Path) -> dict[str, str]:
    """The environment of a process that finds the packages, added to the caller's."""
    paths = [os.environ.get("PYTHONPATH", ""), *map(str, more)]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**os.environ, **threads, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def numbers(name: str, library: list[str], file: Path, site: Path) -> list[Any] | str:
    """The arrays of a program, or the last line of its error."""
    import numpy as np

    file.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, *library, str(HOME / "one.py"), name, str(file)]
    done = subprocess.run(
        command, env=environment(site), capture_output=True, text=True, timeout=TIMEOUT
    )
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no message"])[-1]
    with np.load(file) as found:
        return [found[key] for key in found.files]


def digits(ours: list[Any], theirs: list[Any]) -> float:
    """How many decimal digits agree, at least, of the largest element of each array.

    Raises:
        ValueError: their number, a shape, a dtype, or where NaN is, differs.
    """
    import numpy as np

    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} arrays, and {len(theirs)} with PyTorch")
    worst = 0.0
    for place, (here, there) in enumerate(zip(ours, theirs, strict=True)):
        if here.shape != there.shape or here.dtype != there.dtype:
            raise ValueError(
                f"array {place}: {here.dtype}{here.shape}, and {there.dtype}{there.shape} with "
                "PyTorch"
            )
        if not here.size:
            continue
        here, there = here.astype(np.float64), there.astype(np.float64)
        same = (here == there) | (np.isnan(here) & np.isnan(there))
        with np.errstate(invalid="ignore"):  # equal infinities
            differing = np.where(same, 0.0, np.abs(here - there))
        if np.isnan(differing).any():
            raise ValueError(f"array {place}: NaN or infinity where PyTorch has none, or none")
        scale = np.max(np.abs(np.where(np.isfinite(there), there, 0.0)))
        worst = max(worst, float(np.max(differing) / max(scale, NOISE)))
    return 16.0 if worst == 0 else -math.log10(worst)


def about(program: Path) -> str:
    """The description in a program's first line."""
    text = ast.get_docstring(ast.parse(program.read_text())) or ""
    return " ".join(text.partition(": ")[2].split()).rstrip(".")


def run_program(name: str, site: Path) -> tuple[str, bool]:
    """The text for the column of digits, and whether the program passes."""
    ours = numbers(name, ["-m", "plugrad.as_torch"], BUILD / "results" / f"{name}.npz", site)
    if isinstance(ours, str):
        return f"fails: {ours}", False
    if importlib.util.find_spec("torch") is None:
        return "runs", True
    theirs = numbers(name, [], BUILD / "results" / f"{name}.torch.npz", site)
    if isinstance(theirs, str):
        return f"fails with PyTorch: {theirs}", False
    try:
        found = digits(ours, theirs)
    except ValueError as error:
        return f"differs: {error}", False
    return "all" if found >= 16 else f"{found:.1f}", found >= ENOUGH


def unpacked(name: str, version: str) -> Path:
    """The source distribution of a package, unpacked."""
    folder = BUILD / "sdists" / f"{name}-{version}"
    if not folder.exists():
        archives = BUILD / "archives"
        # Its setup.py may import setuptools or PyTorch, as they are here.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-build-isolation", "--no-binary", ":all:", "--dest", str(archives)]
        subprocess.run([*command, f"{name}=={version}"], check=True)
        plain = re.sub("[-_.]+", "[-_.]", name)
        (archive,) = (
            each for each in archives.iterdir() if re.match(f"{plain}-{version}", each.name)
        )
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
    (inside,) = (each for each in folder.iterdir() if each.is_dir())
    return inside


def run_suite(suite: dict[str, Any], version: str, site: Path) -> tuple[int, int, bool]:
    """How many tests of a package passed and failed, and whether that was expected."""
    name = suite["name"]
    left_out = [word for test in suite.get("left_out", {}) for word in ("--deselect", test)]
    if "package" in suite:
        folder, target = site, ["--pyargs", suite["package"]]
    else:
        folder, target = unpacked(name, version), list(suite["tests"])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "plugrad.as_torch",
        "-p",
        "seeded",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    command += ["-c", os.devnull, "--rootdir", str(folder), *left_out, *target]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(site, HOME) | suite.get("environment", {}),
        capture_output=True,
        text=True,
        timeout=1800,
    )
    last = (done.stdout.strip().splitlines() or [""])[-1]
    counts = {kind: int(count) for count, kind in re.findall(r"(\d+) (passed|failed|error)", last)}
    passed, failed = counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)
    if failed or not passed:
        print(done.stdout[-6000:], done.stderr[-2000:])
    return passed, failed, bool(passed) and not failed


def main(names: list[str]) -> int:
    """Run all programs and suites, or the named ones; returns the exit code."""
    site, versions, well = installed(), pins(), True
    page = HEAD
    programs = tomllib.loads((HOME / "suites.toml").read_text())
    distributions: dict[str, str] = programs.get("distributions", {})
    for program in sorted((HOME / "programs").glob("*/*.py"), key=lambda path: path.stem):
        if names and program.stem not in names:
            continue
        package = distributions.get(program.stem, program.stem.replace("_", "-"))
        text, is_well = run_program(program.stem, site)
        well &= is_well
        print(f"{package} {versions[package]}: {text}", flush=True)
        page += f"| {package} | {versions[package]} | {about(program)} | {text} |\n"
    page += SUITES
    for suite in programs["suites"]:
        name = suite["name"]
        if names and name not in names:
            continue
        passed, failed, is_well = run_suite(suite, versions[name], site)
        well &= is_well
        print(f"tests of {name}: {passed} passed, {failed} failed", flush=True)
        reasons = dict.fromkeys(suite.get("left_out", {}).values())
        left = f"{len(suite.get('left_out', {}))}: {'; '.join(reasons)}" if reasons else ""
        page += f"| {name} | {versions[name]} | {passed} | {failed} | {left} |\n"
    if not names and importlib.util.find_spec("torch") is not None:
        PAGE.write_text(page, encoding="utf-8")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
