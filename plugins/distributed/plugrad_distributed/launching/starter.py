"""The program that starts processes here, and its command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Starter", "count_of_slurm", "find_starter"]


@dataclass(frozen=True)
class Starter:
    """A program that starts processes.

    Attributes:
        path: where it is.
        kind: ``"hydra"`` (MPICH, Intel MPI), ``"openmpi"``, ``"srun"`` or ``"unknown"``.
    """

    path: str
    kind: str

    def command(
        self,
        count: int,
        program: Sequence[str],
        hostfile: Path | None = None,
        hosts: Sequence[str] = (),
        variables: Sequence[str] = (),
    ) -> list[str]:
        """The command line that runs a program `count` times.

        Args:
            hostfile: a file with the machines, in the starter's own format.
            hosts: names of machines.
            variables: environment variables to pass on; some starters pass on all.

        Raises:
            ValueError: the starter has no option for the machines.

        >>> from plugrad_distributed.launching.starter import Starter
        >>> Starter("mpiexec", "hydra").command(2, ["python", "train.py"], hosts=["a", "b"])
        ['mpiexec', '-n', '2', '-hosts', 'a,b', 'python', 'train.py']
        """
        found = [self.path, "-n", str(count)]
        if self.kind == "srun" and "SLURM_MPI_TYPE" not in os.environ:
            # The default of most clusters, none, starts processes that do not know each other.
            found.append("--mpi=pmix" if _library() == "Open MPI" else "--mpi=pmi2")
        if self.kind == "openmpi":
            # More ranks than cores are allowed, as with the other starters.
            found.append("--oversubscribe")
            for name in variables:
                found += ["-x", name]
        if hostfile is not None:
            found += [self._option("hostfile"), str(hostfile)]
        if hosts:
            found += [self._option("hosts"), ",".join(hosts)]
        return [*found, *program]

    def _option(self, what: str) -> str:
        option = _OPTIONS.get(self.kind, {}).get(what)
        if option is None:
            raise ValueError(
                f"--{what}: {self.path} ({self.kind}) has no such option: name the machines as its "
                "documentation says"
            )
        return option


_OPTIONS = {
    "hydra": {"hostfile": "-f", "hosts": "-hosts"},
    "openmpi": {"hostfile": "--hostfile", "hosts": "--host"},
    "srun": {"hosts": "--nodelist"},
}


def find_starter(wanted: str = "") -> Starter:
    """mpiexec beside this Python, else on the path, else srun in a job of SLURM.

    Args:
        wanted: the name or path of another program to use.

    Raises:
        FileNotFoundError: there is none.
    """
    if wanted:
        path = shutil.which(wanted)
        if path is None:
            raise FileNotFoundError(f"--mpiexec: no program {wanted!r} found")
        return Starter(path, _kind_of(path))
    beside = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    path = beside or shutil.which("mpiexec")
    if path is not None:
        return Starter(path, _kind_of(path))
    srun = shutil.which("srun") if "SLURM_JOB_ID" in os.environ else None
    if srun is not None:
        return Starter(srun, "srun")
    raise FileNotFoundError(
        "there is no mpiexec: pip install 'plugrad-distributed[mpi]', or load the cluster's MPI"
    )


def _kind_of(path: str) -> str:
    """The MPI that the program belongs to, from its own output."""
    if Path(path).name == "srun":
        return "srun"
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=20, check=False
        ).stdout.lower()
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    if "hydra" in said or "intel(r) mpi" in said:
        return "hydra"
    if any(name in said for name in ("open mpi", "openrte", "open-mpi", "prte")):
        return "openmpi"
    return "unknown"


def _library() -> str:
    """The vendor of the MPI library that programs will use; "" if there is none."""
    try:
        import mpi4py

        mpi4py.rc.initialize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError):
        return ""
    return str(MPI.get_vendor()[0])


def count_of_slurm(environment: Mapping[str, str]) -> int | None:
    """The number of processes of a SLURM job; None outside of one.

    >>> from plugrad_distributed.launching.starter import count_of_slurm
    >>> count_of_slurm({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "16"})
    16
    """
    count = environment.get("SLURM_NTASKS", "")
    return int(count) if "SLURM_JOB_ID" in environment and count.isdecimal() else None
