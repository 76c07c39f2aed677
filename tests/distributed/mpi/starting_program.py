"""Rank 0 is killed as soon as it has memory for both ranks, before MPI has started. Rank 1 stays
just before the start: MPI would abort if it opened the memory at the moment of the kill. With a
port as its argument, the program starts both ranks itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from plugrad import distributed as dist
from plugrad_distributed.carriers import mpi as carrier
from plugrad_distributed.errors import DistNetworkError
from tests.distributed.under_mpi import report

_MARK = "/dev/shm/mpich_shm_"


def end_in_start() -> None:
    """Report the name of the shared memory once this process has it, and be killed."""
    while True:
        lines = Path("/proc/self/maps").read_text().splitlines()
        names = {line.split()[-1] for line in lines if _MARK in line}
        if names:
            report(sorted(names))
            os.kill(os.getpid(), signal.SIGKILL)


def never_start(mpi: Any) -> None:
    threading.Event().wait()


def start_both(port: str) -> None:
    place = {"MASTER_ADDR": "localhost", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    command = [sys.executable, __file__]
    ranks = [
        subprocess.Popen(command, env={**os.environ, **place, "RANK": str(rank)})
        for rank in range(2)
    ]
    for process in ranks:
        process.wait()


def main() -> None:
    if sys.argv[1:]:
        start_both(sys.argv[1])
        return
    rank = int(os.environ["RANK"])
    assert dist.is_mpi_available()
    if rank == 0:
        threading.Thread(target=end_in_start, daemon=True).start()
    else:
        carrier.init_mpi = never_start
    try:
        dist.init_process_group("mpi", timeout=30)
    except DistNetworkError as error:
        report(str(error))
        sys.exit(1)


if __name__ == "__main__":
    main()
