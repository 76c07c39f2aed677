"""The peak memory per rank of training a fully sharded MLP, compared with one process.

`python -m benchmarks.processes.sharded_memory`. The ranks are processes under mpiexec. It counts
allocations of Python and NumPy, by tracemalloc, from before the model is made to after the last
step.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

from benchmarks.measure import PLUGRAD, Budget, Effort, Row, Sample
from benchmarks.report import tables

LAYERS, WIDTH, BATCH, STEPS = 16, 512, 64, 3
RANKS = 4
ALONE = "one process"


def train(layers: int, width: int) -> None:
    """A few steps of this rank with Adam; the model is sharded if there are several ranks."""
    import plugrad
    import plugrad.distributed as dist
    from plugrad import nn
    from plugrad.distributed.fsdp import fully_shard

    count = dist.get_world_size()
    found: list[nn.Module] = []
    for _ in range(layers):
        # Each layer is sharded before the next one is made.
        layer = nn.Linear(width, width)
        found += [fully_shard(layer) if count > 1 else layer, nn.ReLU()]
    model = nn.Sequential(*found)
    if count > 1:
        fully_shard(model)
    optimizer = plugrad.optim.Adam(model.parameters(), lr=1e-3)
    x = plugrad.randn(BATCH // count, width)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()


def child() -> None:
    """Train, and print the peak in megabytes; each rank runs this."""
    import plugrad.distributed as dist

    dist.init_process_group()
    # Exclude imports at first use.
    train(2, WIDTH)
    tracemalloc.start()
    train(LAYERS, WIDTH)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    found: list[float] = [0.0] * dist.get_world_size()
    dist.all_gather_object(found, peak)
    if dist.get_rank() == 0:
        print(max(found))


def peak(ranks: int) -> float:
    """The largest peak of all ranks, in megabytes."""
    code = "from benchmarks.processes.sharded_memory import child; child()"
    mpiexec = str(Path(sys.executable).with_name("mpiexec"))
    command = [mpiexec, "-n", str(ranks), sys.executable, "-c", code]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)


def run(effort: Effort) -> list[Row]:
    # It allocates the same amount in each run.
    samples = {PLUGRAD: Sample.of([peak(RANKS)]), ALONE: Sample.of([peak(1)])}
    case = f"MLP of {LAYERS} layers of {WIDTH}, batch {BATCH}, Adam, {RANKS} ranks: peak of one"
    return [Row("sharded_memory", case, "MB", samples, Budget(0.4, ALONE))]


if __name__ == "__main__":
    print(tables(run(Effort(smoke=False))))
