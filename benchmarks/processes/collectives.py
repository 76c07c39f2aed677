"""`mpiexec -n 2 python -m benchmarks.processes.collectives [--smoke]`: sums over processes.

It compares `plugrad.distributed.all_reduce` with mpi4py's `Allreduce` on the same memory, and with
PyTorch's gloo. The processes make the same calls alternately, each after a barrier.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import plugrad
from benchmarks.measure import PLUGRAD, Budget, Row, Sample, power
from benchmarks.report import tables, write_json
from plugrad import distributed as dist

MPI4PY = "mpi4py"
GLOO = "PyTorch's gloo"
SIZES = [10**3, 10**4, 10**5, 10**6, 10**7]
LIMIT = 1.1
# The least number of elements to sum in a round, in several calls if necessary.
ROUND = 2_000_000
ROUNDS = 30


def contestants(size: int, comm: Any) -> dict[str, Callable[[], object]]:
    """Sums in place, which eventually overflow to infinity, without a change in speed."""
    from mpi4py import MPI

    memory = np.zeros(size, np.float32)
    tensor = plugrad.from_numpy(memory)
    found: dict[str, Callable[[], object]] = {
        PLUGRAD: lambda: dist.all_reduce(tensor),
        MPI4PY: lambda: comm.Allreduce(MPI.IN_PLACE, memory),
    }
    gloo = _gloo(comm)
    if gloo is not None:
        import torch

        shared = torch.from_numpy(memory)
        found[GLOO] = lambda: gloo.all_reduce(shared)
    return found


def _gloo(comm: Any) -> Any:
    """torch.distributed between the same processes; None if PyTorch is not installed."""
    try:
        import torch
        import torch.distributed as gloo
    except ImportError:
        return None
    if not gloo.is_initialized():
        torch.set_num_threads(1)
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        address = f"tcp://127.0.0.1:{comm.bcast(port)}"
        gloo.init_process_group(
            "gloo", init_method=address, rank=comm.Get_rank(), world_size=comm.Get_size()
        )
    return gloo


def measure(size: int, comm: Any, rounds: int) -> dict[str, Sample]:
    """Microseconds per call of each contestant."""
    actions = contestants(size, comm)
    repeats = 1 if rounds < ROUNDS else min(500, max(2, ROUND // size))
    values: dict[str, list[float]] = {name: [] for name in actions}
    # Each follows each other one equally often: gloo's threads still run when its call is over.
    orders = list(itertools.permutations(actions))
    for turn in range(rounds):
        gc.collect()
        for name in orders[turn % len(orders)]:
            action = actions[name]
            action()
            comm.Barrier()
            start = time.perf_counter()
            for _ in range(repeats):
                action()
            values[name].append((time.perf_counter() - start) / repeats * 1e6)
    return {name: Sample.of(found) for name, found in values.items()}


def run(comm: Any, rounds: int) -> list[Row]:
    """A row for each size."""
    return [
        Row(
            "collectives",
            f"all_reduce of {power(size)} float32",
            "us",
            measure(size, comm, rounds),
            Budget(LIMIT, MPI4PY),
        )
        for size in SIZES
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="only check that everything runs")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write all figures to this file")
    arguments = parser.parse_args()
    dist.init_process_group("mpi")
    from mpi4py import MPI

    rows = run(MPI.COMM_WORLD.Dup(), 2 if arguments.smoke else ROUNDS)
    if dist.get_rank() == 0:
        print(tables(rows))
        for row in rows:
            print(
                row.case, {name: round(sample.minimum, 1) for name, sample in row.samples.items()}
            )
        if arguments.json is not None:
            write_json(arguments.json, rows)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
