"""A process's rank on its machine, and the environment variables that contain it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["forget_shared_memory", "is_crowded", "local_place", "place", "tell_environment"]

_MEMORY = "/dev/shm/mpich_shm_"

# The launchers' variables for rank, size, local rank and local size.
_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")
_LOCAL_RANKS = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
_LOCAL_SIZES = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE")


def _number(environment: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    for name in names:
        if environment.get(name, "").isdecimal():
            return int(environment[name])
    return None


def place(environment: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Rank and size, from the launcher of this process."""
    return _number(environment, _RANKS), _number(environment, _SIZES)


def local_place(environment: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Local rank and size: among the processes of this machine."""
    return _number(environment, _LOCAL_RANKS), _number(environment, _LOCAL_SIZES)


def is_crowded(comm: Any, machine: str) -> bool:
    """Whether the processes of a communicator on this machine are more than the cores that they may
    use between them: then those that wait take the cores of those that compute."""
    found = [cores for name, cores in comm.allgather((machine, _cores())) if name == machine]
    usable = 0
    for cores in found:
        usable |= cores
    return len(found) > usable.bit_count()


def _cores() -> int:
    """The cores that this process may use, a bit for each."""
    affinity = getattr(os, "sched_getaffinity", None)
    if affinity is None:
        return int((1 << (os.cpu_count() or 1)) - 1)
    return sum(1 << core for core in affinity(0))


def tell_environment(comm: Any) -> None:
    """Set `RANK`, `WORLD_SIZE`, `LOCAL_RANK` and `LOCAL_WORLD_SIZE` where they are absent: programs
    read them under any launcher."""
    rank, size = local_place(os.environ)
    everyone = comm.allgather((rank, size))
    if any(None in one for one in everyone):
        machine = comm.Split_type(_shared(), comm.Get_rank())
        rank, size = machine.Get_rank(), machine.Get_size()
        machine.Free()
    told = {
        "RANK": comm.Get_rank(),
        "WORLD_SIZE": comm.Get_size(),
        "LOCAL_RANK": rank,
        "LOCAL_WORLD_SIZE": size,
    }
    for name, value in told.items():
        os.environ.setdefault(name, str(value))


def forget_shared_memory() -> None:
    """Unlink the shared memory of MPICH on this machine after all ranks have opened it: the names
    are no longer needed, and killed ranks would leave them and the memory behind."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return
    for name in {line.split()[-1] for line in lines if _MEMORY in line}:
        with contextlib.suppress(OSError):  # another rank was first
            os.unlink(name)


def _shared() -> Any:
    from mpi4py import MPI

    return MPI.COMM_TYPE_SHARED
