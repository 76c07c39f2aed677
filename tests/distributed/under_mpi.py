"""Runs programs as several processes, by mpiexec, by `plugrad launch` or by torchrun, and collects
what their ranks report. A program may also start its ranks itself."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Outcome", "Program", "needs_mpi", "report", "run", "start", "under_mpiexec"]

RESULTS = "PLUGRAD_TEST_RESULTS"
# Distributions that these programs do not need, and that take long to import.
UNUSED = ("jax", "cuda", "onnx", "as_torch", "distributions", "special")

_mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
needs_mpi = pytest.mark.skipif(
    _mpiexec is None or importlib.util.find_spec("mpi4py") is None,
    reason="mpi4py and mpiexec are not installed",
)


def report(value: Any) -> None:
    """In a program: what its rank has found, as JSON can hold it."""
    path = Path(os.environ[RESULTS]) / f"rank-{os.environ['RANK']}.json"
    begun = path.with_suffix(".begun")
    begun.write_text(json.dumps({"pid": os.getpid(), "value": value}))
    begun.rename(path)


@dataclass(frozen=True)
class Outcome:
    """What a program came to.

    Attributes:
        values: what each rank reported last; None if it did not.
        code: the exit code of what started it.
    """

    values: list[Any]
    code: int
    out: str
    err: str

    def value(self, rank: int) -> Any:
        assert self.values[rank] is not None, f"rank {rank} did not report\n{self.out}{self.err}"
        return self.values[rank]


class Program:
    """A program that was started."""

    def __init__(
        self, path: Path, count: int, args: tuple[str, ...], folder: Path, **settings: Any
    ) -> None:
        self.folder = folder
        self.count = count
        folder.mkdir(parents=True, exist_ok=True)
        self._out = (folder / "out").open("w+")
        self._err = (folder / "err").open("w+")
        self.process = subprocess.Popen(
            [*_starter(count, settings), str(path), *args],
            env=_environment(folder, settings.get("variables") or {}),
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            start_new_session=True,
        )

    def pids(self) -> list[int]:
        """The processes of the ranks that have reported something."""
        return [json.loads(path.read_text())["pid"] for path in sorted(self.folder.glob("*.json"))]

    def wait_for_reports(self, limit: float) -> None:
        """Wait until all ranks have reported something."""
        end = time.monotonic() + limit
        while len(list(self.folder.glob("*.json"))) < self.count:
            if time.monotonic() > end or self.process.poll() is not None:
                outcome = self.end(0.0)
                pytest.fail(f"the ranks did not start:\n{outcome.out}{outcome.err}")
            time.sleep(0.01)

    def end(self, limit: float) -> Outcome:
        """Wait until it is over; it fails the test if that takes longer than the limit."""
        late = False
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            late = True
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        texts = []
        for stream in (self._out, self._err):
            stream.seek(0)
            texts.append(stream.read())
            stream.close()
        if late:
            pytest.fail(f"it did not end within {limit:g} s:\n{texts[0]}{texts[1]}")
        values = []
        for rank in range(self.count):
            path = self.folder / f"rank-{rank}.json"
            values.append(json.loads(path.read_text())["value"] if path.exists() else None)
        return Outcome(values, self.process.returncode, *texts)


def under_mpiexec(count: int) -> list[str]:
    """The words before a program's, to run it with mpiexec."""
    assert _mpiexec is not None
    return [_mpiexec, "-n", str(count), sys.executable]


def _starter(count: int, settings: Mapping[str, Any]) -> list[str]:
    python = [sys.executable, "-m"]
    if "torchrun" in settings:
        number = ["--nproc-per-node", str(count)]
        return [*python, "torch.distributed.run", *number, *settings["torchrun"]]
    if settings.get("by_itself"):
        return [sys.executable]
    if settings.get("launch") is not None:
        return [*python, "plugrad.cli", "launch", "-n", str(count), *settings["launch"]]
    return under_mpiexec(count)


def _environment(folder: Path, variables: Mapping[str, str]) -> dict[str, str]:
    disabled = [name for name in os.environ.get("PLUGRAD_DISABLE", "").split(",") if name]
    paths = [str(Path(__file__).resolve().parents[2]), *filter(None, sys.path)]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "PLUGRAD_DISABLE": ",".join(dict.fromkeys([*disabled, *(f"plugrad-{n}" for n in UNUSED)])),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        RESULTS: str(folder),
        **variables,
    }


def start(path: Path, count: int, *args: str, folder: Path, **settings: Any) -> Program:
    """Start a program: by mpiexec, by `plugrad launch` with the options `launch`, by torchrun with
    the options `torchrun`, or so that it starts its ranks `by_itself`."""
    return Program(path, count, args, folder, **settings)


def run(
    path: Path, count: int, *args: str, folder: Path, limit: float = 90.0, **settings: Any
) -> Outcome:
    """Run a program to its end."""
    return start(path, count, *args, folder=folder, **settings).end(limit)
