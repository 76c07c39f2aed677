"""A program that starts its ranks itself, by multiprocessing: `strangers_program.py WAY PLACE
COUNT [LOST]`. Each reports what it finds out about the others. The rank LOST is killed when it is
about to start MPI."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import sys
import time
from typing import Any
from unittest import mock

import plugrad
from plugrad import distributed as dist
from plugrad_distributed.carriers import mpi
from plugrad_distributed.errors import DistError
from tests.distributed.under_mpi import report


def arguments(way: str, place: str, rank: int, count: int) -> dict[str, Any]:
    """What the rank calls `init_process_group` with, and its environment."""
    if way == "environment":
        host, _, port = place.partition(":")
        told = {"MASTER_ADDR": host, "MASTER_PORT": port, "RANK": rank, "WORLD_SIZE": count}
        os.environ.update({name: str(value) for name, value in told.items()})
        return {}
    os.environ["RANK"] = str(rank)
    if way == "tcp":
        return {"backend": "gloo", "init_method": f"{place}?rank={rank}&world_size={count}"}
    return {"backend": "mpi", "init_method": place, "rank": rank, "world_size": count}


def found() -> list[Any]:
    x = plugrad.ones(3) * (dist.get_rank() + 1)
    dist.all_reduce(x)
    return [dist.get_rank(), dist.get_world_size(), x.tolist()]


def run(way: str, place: str, rank: int, count: int) -> None:
    given = arguments(way, place, rank, count)
    dist.init_process_group(timeout=120, **given)
    first = found()
    dist.destroy_process_group()
    dist.init_process_group(timeout=120, **given)
    left = [name for name in os.environ if name.startswith("PMI_")]
    report([first, found(), left, os.environ["LOCAL_RANK"], os.environ["LOCAL_WORLD_SIZE"]])


def run_without(lost: int, way: str, place: str, rank: int, count: int) -> None:
    given = arguments(way, place, rank, count)
    if rank == lost:
        mock.patch.object(mpi, "init_mpi", killed).start()
    start = time.monotonic()
    try:
        dist.init_process_group(timeout=120, **given)
    except DistError as error:
        report([[type(error).__name__, str(error)], time.monotonic() - start])


def killed(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    way, place, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    play = functools.partial(run_without, int(sys.argv[4])) if sys.argv[4:] else run
    spawning = multiprocessing.get_context("spawn")
    ranks = [spawning.Process(target=play, args=(way, place, r, count)) for r in range(count)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    sys.exit(max(abs(process.exitcode or 0) for process in ranks))


if __name__ == "__main__":
    main()
