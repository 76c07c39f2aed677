"""The models of `benchmarks.processes.scaling`, as lists of parts, and how to distribute them.

Fully sharded units and pipeline stages consist of these parts. Predictions use the same cuts: see
`layer_cuts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import plugrad
from plugrad import Tensor, nn, optim
from plugrad.distributed.device_mesh import DeviceMesh
from plugrad.distributed.fsdp import fully_shard
from plugrad.distributed.pipelining import PipelineStage, Schedule1F1B
from plugrad.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    parallelize_module,
)
from plugrad.nn import functional as F

MICROBATCHES = 4


class Scaled(NamedTuple):
    """A model with a batch.

    Attributes:
        parts: the model's modules, in order.
        stages: for each number of ranks, the first part of every stage but the first.
        plan: the plan of tensor parallelism; empty if the model has none.
    """

    parts: list[nn.Module]
    x: Tensor
    y: Tensor
    stages: dict[int, tuple[int, ...]]
    plan: dict[str, ParallelStyle]


def mlp() -> Scaled:
    """784-1024-1024-1024-10, batch 128."""
    widths = (784, 1024, 1024, 1024, 10)
    parts: list[nn.Module] = []
    for number, (before, after) in enumerate(pairwise(widths)):
        layer = nn.Linear(before, after)
        parts.append(layer if number == 0 else nn.Sequential(nn.ReLU(), layer))
    plan: dict[str, ParallelStyle] = {
        "0": ColwiseParallel(),
        "1.1": RowwiseParallel(),
        "2.1": ColwiseParallel(),
        "3.1": RowwiseParallel(),
    }
    x, y = plugrad.randn(128, 784), plugrad.randint(0, 10, (128,))
    return Scaled(parts, x, y, {2: (2,), 4: (1, 2, 3)}, plan)


def cnn() -> Scaled:
    """Three convolutions with batch norm on 32 x 32 images, batch 32."""
    parts: list[nn.Module] = []
    for before, after in ((3, 32), (32, 64), (64, 128)):
        convolution = nn.Conv2d(before, after, 3, padding=1)
        parts.append(nn.Sequential(convolution, nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)))
    parts.append(nn.Sequential(nn.Flatten(), nn.Linear(128 * 16, 10)))
    x, y = plugrad.randn(32, 3, 32, 32), plugrad.randint(0, 10, (32,))
    return Scaled(parts, x, y, {2: (1,), 4: (1, 2, 3)}, {})


class Attention(nn.Module):
    """Norm and attention with a residual connection. The number of heads follows from the output of
    `query`: tensor parallel ranks have fewer each."""

    def __init__(self, width: int, head: int) -> None:
        super().__init__()
        self.head = head
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        def heads(part: Any) -> Any:
            return part.view(part.shape[0], part.shape[1], -1, self.head).transpose(1, 2)

        normed = self.norm(x)
        found = F.scaled_dot_product_attention(
            heads(self.query(normed)), heads(self.key(normed)), heads(self.value(normed))
        )
        return x + self.out(found.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """Norm and two layers with a residual connection."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: Any) -> Any:
        return x + self.down(F.relu(self.up(self.norm(x))))


class Head(nn.Module):
    """A classifier of the mean over the tokens."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, 10)

    def forward(self, x: Any) -> Any:
        return self.layer(x.mean(1))


def transformer() -> Scaled:
    """Two blocks of width 256 with 4 heads, and a classifier of the mean; 8 sequences of 64."""
    parts: list[nn.Module] = []
    plan: dict[str, ParallelStyle] = {}
    for _ in range(2):
        number = len(parts)
        parts += [Attention(256, 64), FeedForward(256, 1024)]
        plan |= {f"{number}.{name}": ColwiseParallel() for name in ("query", "key", "value")}
        plan |= {f"{number}.out": RowwiseParallel()}
        plan |= {f"{number + 1}.up": ColwiseParallel(), f"{number + 1}.down": RowwiseParallel()}
    parts.append(Head(256))
    x, y = plugrad.randn(8, 64, 256), plugrad.randint(0, 10, (8,))
    return Scaled(parts, x, y, {2: (2,), 4: (1, 2, 3)}, plan)


MODELS: dict[str, Callable[[], Scaled]] = {"mlp": mlp, "cnn": cnn, "transformer": transformer}


def layer_cuts(parts: Sequence[nn.Module], cuts: Sequence[int]) -> tuple[int, ...]:
    """The layers with parameters at which parts begin, for the predictions."""
    layers = [
        sum(bool(list(module.parameters(recurse=False))) for module in part.modules())
        for part in parts
    ]
    return tuple(sum(layers[:cut]) for cut in cuts)


# Steps, all with AdamW


def optimizer_of(parameters: Any) -> Any:
    return optim.AdamW(parameters, lr=1e-3)


def training_step(model: Any, scaled: Scaled) -> Callable[..., None]:
    """A step with the batch of the model, or another one."""
    optimizer = optimizer_of(model.parameters())

    def step(x: Tensor = scaled.x, y: Tensor = scaled.y) -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def data_parallel(scaled: Scaled, group: Any) -> Callable[[], None]:
    model = nn.Sequential(*scaled.parts)
    return training_step(nn.parallel.DistributedDataParallel(model, process_group=group), scaled)


def fully_sharded(scaled: Scaled, group: Any) -> Callable[[], None]:
    """Fully sharded, with each part as a unit."""
    mesh = DeviceMesh.from_group(group, "cpu")
    for part in scaled.parts:
        fully_shard(part, mesh=mesh)
    model = nn.Sequential(*scaled.parts)
    return training_step(fully_shard(model, mesh=mesh), scaled)


def tensor_parallel(scaled: Scaled, group: Any) -> Callable[[], None]:
    mesh = DeviceMesh.from_group(group, "cpu")
    model = nn.Sequential(*scaled.parts)
    parallelize_module(model, mesh, scaled.plan)
    return training_step(model, scaled)


def pipeline(scaled: Scaled, group: Any) -> Callable[[], None]:
    """A pipeline with one stage on each rank, alternating forward and backward."""
    rank, size = group.rank(), group.size()
    edges = (0, *scaled.stages.get(size, ()), len(scaled.parts))
    module = nn.Sequential(*scaled.parts[edges[rank] : edges[rank + 1]])
    stage = PipelineStage(module, rank, size, "cpu", group=group)
    schedule = Schedule1F1B(stage, MICROBATCHES, F.cross_entropy)
    optimizer = optimizer_of(module.parameters())
    args = (scaled.x,) if rank == 0 else ()
    target = scaled.y if rank == size - 1 else None

    def step() -> None:
        optimizer.zero_grad()
        schedule.step(*args, target=target, return_outputs=False)
        optimizer.step()

    return step


SPREAD: dict[str, Callable[[Scaled, Any], Callable[[], None]]] = {
    "data parallel": data_parallel,
    "fully sharded": fully_sharded,
    "tensor parallel": tensor_parallel,
    "pipeline": pipeline,
}
