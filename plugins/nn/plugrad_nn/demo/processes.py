"""The demo on several processes: `plugrad demo --processes 2` starts itself once for each, and the
gradients are averaged."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from plugrad import Tensor
from plugrad_nn import nn
from plugrad_nn.processes import distributed_package
from plugrad_nn.utils.data import DataLoader, DistributedSampler, TensorDataset

# Set in the processes that `start` starts.
MARK = "PLUGRAD_DEMO_RANK"


def is_installed() -> bool:
    """Whether plugrad-distributed is installed."""
    return distributed_package() is not None


def is_rank() -> bool:
    """Whether this is one of the processes that `start` started."""
    return MARK in os.environ


def start(count: int, options: Sequence[str]) -> int:
    """Run the demo with these options on several processes; the exit code."""
    own = [sys.executable, "-m", "plugrad.cli"]
    command = [*own, "launch", "-n", str(count), "-m", "plugrad.cli", "demo", *options]
    return subprocess.call(command, env={**os.environ, MARK: "1"})


class Ranks:
    """The processes of a run, including this one, as training uses them."""

    def __init__(self, package: Any) -> None:
        self._dist = package
        self.rank: int = package.get_rank()
        self.count: int = package.get_world_size()

    def parallel(self, model: nn.Module) -> nn.Module:
        """The model, with gradients averaged over the processes."""
        wrapped: nn.Module = nn.parallel.DistributedDataParallel(model)
        return wrapped

    def loader(
        self, dataset: TensorDataset, batch_size: int, seed: int
    ) -> tuple[DataLoader[Any], DistributedSampler]:
        """This process's share of each batch."""
        sampler = DistributedSampler(dataset, self.count, self.rank, shuffle=True, seed=seed)
        return DataLoader(dataset, batch_size // self.count, sampler=sampler), sampler

    def mean(self, loss: Tensor) -> Tensor:
        """The mean of a number over the processes."""
        self._dist.all_reduce(loss, "avg")
        return loss


@contextmanager
def joined() -> Iterator[Ranks]:
    """This process among the others, within the block."""
    dist = distributed_package()
    assert dist is not None
    dist.init_process_group()
    try:
        yield Ranks(dist)
    finally:
        dist.destroy_process_group()
