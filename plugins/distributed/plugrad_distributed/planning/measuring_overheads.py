"""measure_overheads: what the ways to spread a model take of Python's time."""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import plugrad
from plugrad import Tensor, nn
from plugrad_distributed.distributed.collectives import (
    all_gather_into_tensor,
    all_reduce,
    barrier,
    reduce_scatter_tensor,
)
from plugrad_distributed.distributed.fsdp import fully_shard
from plugrad_distributed.distributed.pipelining.schedules import (
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
)
from plugrad_distributed.distributed.pipelining.stage import PipelineStage
from plugrad_distributed.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from plugrad_distributed.groups.process_group import ProcessGroup
from plugrad_distributed.mesh.device_mesh import DeviceMesh
from plugrad_distributed.planning.overheads import Overheads

__all__ = ["Layers", "measure_layers", "measure_overheads"]

LAYERS = 4
# Weights of 4 MB: more than caches hold.
LARGE = 1000
# All are called in turns for so long, in seconds.
CALLED = 1.0
# Where ranks call together, so often.
ROUNDS = 15


class Layers(NamedTuple):
    """Overheads of that name."""

    layer: float
    unit: float
    gathered: float


def measure_layers(group: ProcessGroup) -> Layers:
    """The overhead of layers and units over plain ones and their collectives, with almost no
    computation. Every rank of a group calls it: waiting for each other counts."""
    mesh = DeviceMesh.from_group(group, "cpu")
    plain, units = _layers(), _layers()
    for layer in units:
        fully_shard(layer, mesh=mesh)
    actions = {
        "plain": _pass(plain),
        "split": _pass(parallelize_module(_layers(), mesh, _alternating())),
        "units": _pass(fully_shard(units, mesh=mesh)),
        "whole": _pass(fully_shard(_layers(), mesh=mesh, reshard_after_forward=True)),
        "all_reduce": _sum(group),
        "all_gather": _gather(group),
        "reduce_scatter": _scatter(group),
    }
    best = dict.fromkeys(actions, math.inf)
    for _ in range(ROUNDS):
        for name, action in actions.items():
            barrier(group=group)
            best[name] = min(best[name], _seconds(action))
    collectives = 2 * best["all_gather"] + best["reduce_scatter"]
    # Each pair of split layers sums its results and, except for the first one, the gradients of its
    # inputs.
    sums = (LAYERS - 1) * best["all_reduce"]
    several, one = best["units"] - LAYERS * collectives, best["whole"] - collectives
    unit = max(0.0, (several - one) / (LAYERS - 1))
    return Layers(
        layer=max(0.0, (best["split"] - best["plain"] - sums) / LAYERS),
        unit=unit,
        gathered=max(0.0, (one - unit - best["plain"]) / (2 * LAYERS)),
    )


def measure_overheads(
    group: ProcessGroup, optimizer: Callable[[Any], Any] | None = None
) -> Overheads:
    """The overheads of updates and of pipelines on this process, with layers that compute almost
    nothing.

    Args:
        group: of this process only.
        optimizer: makes one, of parameters; SGD with momentum by default.
    """
    mesh = DeviceMesh.from_group(group, "cpu")
    make = optimizer or (lambda parameters: plugrad.optim.SGD(parameters, lr=0.1, momentum=0.9))
    plain, whole = _layers(), fully_shard(_layers(), mesh=mesh)
    for model in (plain, whole):
        _pass(model)()  # optimizers need gradients
    actions = {
        "update": make(list(plain.parameters())).step,
        "sharded update": make(list(whole.parameters())).step,
        "large update": make(_updated(_large(None))).step,
        "large sharded update": make(_updated(_large(mesh))).step,
        "microbatches": _piped(group, LAYERS),
        "twice as many": _piped(group, 2 * LAYERS),
        "microbatch": _microbatch(nn.Linear(4, 4)),
        "two stages": _piped(group, LAYERS, ScheduleInterleaved1F1B),
        "two split": _piped(group, LAYERS, ScheduleInterleavedZeroBubble),
    }
    took = _fastest(actions)
    updated = max(0.0, (took["sharded update"] - took["update"]) / (2 * LAYERS))
    large = took["large sharded update"] - took["large update"]
    size = 4 * LARGE * LARGE
    piped = (took["twice as many"] - took["microbatches"]) / LAYERS
    return Overheads(
        updated=updated,
        updated_byte=max(0.0, large / LAYERS - updated) / size,
        temporary=_allocated(actions["large sharded update"]) / size,
        microbatch=max(0.0, piped - took["microbatch"]),
        # The first of two stages is not split.
        split=max(0.0, took["two split"] - took["two stages"]) / LAYERS,
    )


def _fastest(actions: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds of the fastest call of each, in turns: whatever else runs only adds to them."""
    best = dict.fromkeys(actions, math.inf)
    end = time.perf_counter() + CALLED
    calls = 0
    while time.perf_counter() < end or calls < 5:
        for name, action in actions.items():
            best[name] = min(best[name], _seconds(action))
        calls += 1
    return best


def _seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _allocated(action: Callable[[], Any]) -> float:
    """Bytes that Python and NumPy hold at most while something runs, beyond those before."""
    runs = tracemalloc.is_tracing()
    if not runs:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        action()
        return float(tracemalloc.get_traced_memory()[1] - before)
    finally:
        if not runs:
            tracemalloc.stop()


def _layers() -> Any:
    return nn.Sequential(*(nn.Linear(4, 4) for _ in range(LAYERS)))


def _large(mesh: DeviceMesh | None) -> Any:
    """Large layers, each a unit. Several, as a program keeps the memory that one of them needed for
    the next one."""
    layers = nn.Sequential(*(nn.Linear(LARGE, LARGE, bias=False) for _ in range(LAYERS)))
    if mesh is None:
        return layers
    for layer in layers:
        fully_shard(layer, mesh=mesh)
    return fully_shard(layers, mesh=mesh)


def _updated(layers: Any) -> list[Any]:
    """Their parameters, with gradients."""
    layers(plugrad.ones(1, LARGE)).sum().backward()
    return list(layers.parameters())


def _alternating() -> dict[str, Any]:
    return {
        str(number): RowwiseParallel() if number % 2 else ColwiseParallel()
        for number in range(LAYERS)
    }


def _pass(model: Any) -> Callable[[], None]:
    (first, *_) = model.parameters()
    x = plugrad.ones(2, first.shape[1])

    def both() -> None:
        model.zero_grad()
        model(x).sum().backward()

    both()
    return both


def _sum(group: ProcessGroup) -> Callable[[], Any]:
    x = plugrad.zeros(4)
    return lambda: all_reduce(x, group=group)


def _gather(group: ProcessGroup) -> Callable[[], Any]:
    whole, part = plugrad.zeros(4 * group.size()), plugrad.zeros(4)
    return lambda: all_gather_into_tensor(whole, part, group=group)


def _scatter(group: ProcessGroup) -> Callable[[], Any]:
    whole, part = plugrad.zeros(4 * group.size()), plugrad.zeros(4)
    return lambda: reduce_scatter_tensor(part, whole, group=group)


def _loss(output: Tensor, target: Tensor) -> Tensor:
    return output.sum()


def _piped(group: ProcessGroup, count: int, kind: Any = None) -> Callable[[], None]:
    """A batch of so many microbatches, through one stage, or through two with a schedule for
    several."""
    layers = [nn.Linear(4, 4) for _ in range(1 if kind is None else 2)]
    stages = [
        PipelineStage(layer, number, len(layers), "cpu", group=group)
        for number, layer in enumerate(layers)
    ]
    schedule: Any
    if kind is None:
        schedule = ScheduleGPipe(stages[0], count, _loss)
    else:
        schedule = kind(stages, count, _loss)
    x, target = plugrad.ones(2 * count, 4), plugrad.zeros(2 * count)

    def step() -> None:
        for layer in layers:
            layer.zero_grad()
        schedule.step(x, target=target, return_outputs=False)

    return step


def _microbatch(layer: Any) -> Callable[[], None]:
    """Forward and backward without a pipeline, with an existing gradient."""
    x = plugrad.ones(2, 4)
    layer(x).sum().backward()

    def both() -> None:
        layer(x).sum().backward()

    return both
