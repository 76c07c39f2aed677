"""The cost of DistributedDataParallel without gradients to reduce: training steps of models in
a group of one process, with and without it. `python -m benchmarks.processes.wrapping`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import plugrad
import plugrad.distributed as dist
from benchmarks.measure import PLUGRAD, Budget, Effort, Row, interleave
from benchmarks.processes.training import cnn
from benchmarks.report import tables
from plugrad import nn, optim
from plugrad.nn.parallel import DistributedDataParallel

BARE = "without it"
# At most 3 % of a step.
LIMIT = 1.03


def mlp() -> nn.Module:
    """784-256-256-10."""
    return nn.Sequential(
        *(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()), nn.Linear(256, 10)
    )


# By name: what makes the model, and the shape of its batch.
MODELS: Mapping[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "MLP 784-256-256-10, batch 64, SGD": (mlp, (64, 784)),
    "CNN on 32 x 32 pixels, batch 32, SGD": (cnn, (32, 3, 32, 32)),
}


@contextmanager
def group_of_one() -> Iterator[None]:
    """A process group that consists of this process."""
    dist.init_process_group(rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()


def step_of(model: nn.Module, batch: tuple[int, ...]) -> Callable[[], object]:
    """A training step on random numbers."""
    optimizer = optim.SGD(model.parameters(), lr=1e-3)
    x, y = plugrad.randn(*batch), plugrad.randint(0, 10, batch[:1])

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def run(effort: Effort) -> list[Row]:
    rows = []
    with group_of_one():
        for name, (make, batch) in MODELS.items():
            steps = {
                PLUGRAD: step_of(DistributedDataParallel(make()), batch),
                BARE: step_of(make(), batch),
            }
            samples = interleave(steps, effort)
            rows.append(Row("wrapping", name, "us per step", samples, Budget(LIMIT, BARE)))
    return rows


if __name__ == "__main__":
    print(tables(run(Effort(smoke=False))))
