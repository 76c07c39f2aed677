"""What a stranger gets: builds the wheels, installs them far from the checkout, certifies there.

A fresh virtual environment in a temporary folder gets the wheels of every distribution and of the
example backends. In it the conformance kit runs against the backends, the demo trains on two, and
each scaffold is made, built, installed and tested. Nothing there can see the sources. plugrad-cuda
is there without CuPy: a backend that cannot be used must not disturb the others.

JAX compiles a program for nearly every test, so its kit takes longer than all the rest together:
a part of it runs, another one each time, and all of it with `--full`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from workspace import BACKENDS, BUILD_WHEEL, DISTRIBUTIONS, EXAMPLES, PYTHON, ROOT, Workspace, say

SCAFFOLDS = (
    ("backend", "acme"),
    ("backend", "strictly", "--namespace", "array_api_strict"),
    ("kernels", "swift"),
    ("ops", "waves"),
    ("ops", "tides", "--style", "python"),
)
CONFORMANCE = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs")
KIT = (*CONFORMANCE, "plugrad.testing.conformance")
# How much of the kit runs on JAX, and on the backends that scaffolds write: two others of the same
# kinds, which are kept as examples, run all of it.
SHARE_ON_JAX = 0.03
SHARE_ON_SCAFFOLDS = 0.25
# Finite differences want 64 bits; programs that run once are better compiled soon than well.
JAX = {
    "JAX_ENABLE_X64": "1",
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
    "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",
}


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
        """Run what the rest depends on."""
        if code := self.call(*command):
            sys.exit(code)

    def check(self, title: str, *command: str | Path, **environment: str) -> bool:
        """Run one check and say how it went."""
        say(title)
        passed = self.call(*command, **environment) == 0
        if not passed:
            say(f"FAILED: {title}")
        return passed

    def begin(self, title: str, *command: str | Path, **environment: str) -> Beside:
        """Start a check that runs beside the others."""
        return Beside(title, self, [str(part) for part in command], environment)

    def install(self, *wanted: str | Path) -> None:
        self.need(self.python, "-m", "pip", "install", "--quiet", *wanted)

    def wheel_of(self, package: Path, name: str) -> Path:
        """Build a package that a scaffold wrote, in the workspace's environment."""
        target = self.folder / "wheels" / name
        target.mkdir(parents=True)
        subprocess.check_call([str(PYTHON), "-c", BUILD_WHEEL, str(target)], cwd=package)
        return next(target.glob("*.whl"))

    def scaffold(self, share: float, kind: str, name: str, *flags: str) -> bool:
        """Make a package, build it, install it, and run its own tests, a share of the kit."""
        plugrad = self.python.with_name("plugrad")
        title = " ".join(("plugrad new", kind, name, *flags))
        if not self.check(title, plugrad, "new", kind, name, *flags, "--yes"):
            return False
        package = self.work / f"plugrad-{name}"
        self.install(self.wheel_of(package, package.name))
        options = {"PYTEST_ADDOPTS": f"--plugrad-share={share}"} if kind == "backend" else {}
        command = (self.python, "-m", "pytest", "-q", package)
        return self.check(f"its tests: {package.name}", *command, **options)


def kit(away: Away, reports: Path, backend: str, level: str) -> list[str | Path]:
    """The command that certifies a backend."""
    return [
        away.python,
        *KIT,
        f"--plugrad-backend={backend}",
        f"--plugrad-level={level}",
        f"--plugrad-report={reports / backend}.html",
    ]


class Beside:
    """A check in a process of its own; what it prints is shown when it is asked for."""

    def __init__(
        self, title: str, away: Away, command: list[str], environment: dict[str, str]
    ) -> None:
        self.title = title
        self.log = away.folder / "beside.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                cwd=away.work,
                env={**away.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def passed(self) -> bool:
        """Wait for it, and say how it went."""
        code = self.process.wait()
        say(self.title)
        print(self.log.read_text(errors="replace"), flush=True)
        if code:
            say(f"FAILED: {self.title}")
        return code == 0


def main(arguments: Sequence[str]) -> int:
    workspace = Workspace()
    workspace.install()
    with tempfile.TemporaryDirectory(prefix="plugrad-") as temporary:
        away = Away(Path(temporary))
        say(f"a fresh environment in {away.folder}")
        optional = [folder for folder, _ in BACKENDS.values()]
        folders = (*DISTRIBUTIONS, *optional, *EXAMPLES)
        away.install("pytest", *(workspace.wheel(folder, workspace.mode()) for folder in folders))
        # The wheels are there: now what their extras want.
        away.install("hypothesis", "pytest-xdist", *DISTRIBUTIONS.values())
        reports = ROOT / "build" / "certificates"
        shutil.rmtree(reports, ignore_errors=True)
        reports.mkdir(parents=True)
        command = away.python.with_name("plugrad")
        results = [away.check("plugrad doctor", command, "doctor")]
        # It takes longer than all others together, so it gets two processes for itself.
        share = 1 if "--full" in arguments else SHARE_ON_JAX
        command_on_jax = (
            *kit(away, reports, "jax", "full"),
            f"--plugrad-share={share}",
            *("-n", "2", "--dist", "worksteal"),
        )
        jax = away.begin(f"the kit: jax, level full, {share:.0%} of it", *command_on_jax, **JAX)
        for backend, level in (("cpu", "full"), ("strict", "core"), ("numbers", "core")):
            results.append(
                away.check(
                    f"the kit: {backend}, level {level}", *kit(away, reports, backend, level)
                )
            )
        results.append(
            away.check(
                "an operator of a plugin: special::gammaln",
                away.python,
                *KIT,
                "--plugrad-op=special::gammaln",
            )
        )
        for backend in ("strict", "jax"):
            title = f"the demo on backend {backend}"
            results.append(away.check(title, command, "demo", "--backend", backend))
        share = 1 if "--full" in arguments else SHARE_ON_SCAFFOLDS
        results += [away.scaffold(share, *package) for package in SCAFFOLDS]
        results.append(jax.passed())
    say(f"{sum(results)} of {len(results)} checks passed; certificates: build/certificates")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
