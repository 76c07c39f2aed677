"""The gain of a second process in training a CNN: `python -m benchmarks.processes.training`.

Each process has one thread and its own batch; two processes use DistributedDataParallel. Rounds of
one process and of two alternate. The figure is the time per image, over all processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import PLUGRAD, Budget, Effort, Row, Sample
from benchmarks.report import tables

if TYPE_CHECKING:
    from plugrad import nn

BATCH, STEPS, ROUNDS = 32, 20, 3
ALONE = "one process"
# Two processes must do 1.7 times as much.
LIMIT = 1 / 1.7


def cnn() -> nn.Module:
    """Three convolutions and a linear layer, for images of 3 x 32 x 32."""
    from plugrad import nn

    return nn.Sequential(
        *(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Flatten()),
        nn.Linear(64 * 16 * 16, 10),
    )


def child() -> None:
    """Train, and print the times of the steps in seconds; each process runs this."""
    import plugrad
    import plugrad.distributed as dist
    from plugrad import nn, optim

    dist.init_process_group()
    model = cnn()
    if dist.get_world_size() > 1:
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    images, labels = plugrad.randn(BATCH, 3, 32, 32), plugrad.randint(0, 10, (BATCH,))
    times = []
    for _ in range(STEPS + 3):
        dist.barrier()
        started = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        dist.barrier()
        times.append(time.perf_counter() - started)
    if dist.get_rank() == 0:
        print(*times[3:])


def per_image(processes: int) -> list[float]:
    """Microseconds per image of each step."""
    code = "from benchmarks.processes.training import child; child()"
    mpiexec = str(Path(sys.executable).with_name("mpiexec"))
    command = [mpiexec, "-n", str(processes), sys.executable, "-c", code]
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PLUGRAD_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(threads, "1")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return [float(seconds) / (BATCH * processes) * 1e6 for seconds in done.stdout.split()]


def run(effort: Effort) -> list[Row]:
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(1 if effort.smoke else ROUNDS):
        for processes, found in times.items():
            found += per_image(processes)
    samples = {PLUGRAD: Sample.of(times[2]), ALONE: Sample.of(times[1])}
    case = f"CNN step, batch {BATCH} on each of 2 processes, per image"
    return [Row("training", case, "us", samples, Budget(LIMIT, ALONE))]


if __name__ == "__main__":
    print(tables(run(Effort(smoke=False))))
