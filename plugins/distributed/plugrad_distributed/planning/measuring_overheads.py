"""measure_overheads: what the ways to spread a model take of Python's time."""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any

import plugrad
from plugrad import Tensor, nn
from plugrad_distributed.distributed.collectives import (
    all_gather_into_tensor,
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
from plugrad_distributed.planning.data import COPIES_ALONE
from plugrad_distributed.planning.overheads import Overheads

__all__ = ["measure_overheads"]

LAYERS = 4
LARGE = 800
# All are called in turns for so long, in seconds.
CALLED = 1.0


def measure_overheads(
    group: ProcessGroup, optimizer: Callable[[Any], Any] | None = None
) -> Overheads:
    """The overheads on this process, with layers that have next to nothing to compute.

    Args:
        group: of this process only.
        optimizer: makes one, of parameters; SGD with momentum by default.
    """
    mesh = DeviceMesh.from_group(group, "cpu")
    make = optimizer or (lambda parameters: plugrad.optim.SGD(parameters, lr=0.1, momentum=0.9))
    plain, units = _layers(), _layers()
    for layer in units:
        fully_shard(layer, mesh=mesh)
    whole = fully_shard(_layers(), mesh=mesh, reshard_after_forward=True)
    actions = {
        "plain": _pass(plain),
        "split": _pass(parallelize_module(_layers(), mesh, _alternating())),
        "units": _pass(fully_shard(units, mesh=mesh)),
        "whole": _pass(whole),
        "all_gather": _gather(group),
        "reduce_scatter": _scatter(group),
        "update": make(list(plain.parameters())).step,
        "sharded update": make(list(whole.parameters())).step,
        "large plain": _pass(_large(None)),
        "large units": _pass(_large(mesh)),
        "large update": make(_updated(_large(None))).step,
        "large sharded update": make(_updated(_large(mesh))).step,
        "microbatches": _piped(group, LAYERS),
        "twice as many": _piped(group, 2 * LAYERS),
        "microbatch": _microbatch(nn.Linear(4, 4)),
        "two stages": _piped(group, LAYERS, ScheduleInterleaved1F1B),
        "two split": _piped(group, LAYERS, ScheduleInterleavedZeroBubble),
    }
    took = _fastest(actions)
    parameters = 2 * LAYERS
    collectives = 2 * took["all_gather"] + took["reduce_scatter"]
    several, one = took["units"] - LAYERS * collectives, took["whole"] - collectives
    unit = max(0.0, (several - one) / (LAYERS - 1))
    updated = max(0.0, (took["sharded update"] - took["update"]) / parameters)
    large = took["large sharded update"] - took["large update"]
    size = 4 * LARGE * LARGE
    gathered = max(0.0, (one - unit - took["plain"]) / parameters)
    moving = (took["large units"] - took["large plain"]) / LAYERS - collectives - unit - gathered
    piped = (took["twice as many"] - took["microbatches"]) / LAYERS
    return Overheads(
        layer=max(0.0, (took["split"] - took["plain"]) / LAYERS),
        unit=unit,
        gathered=gathered,
        moved=max(0.0, moving) / (size * COPIES_ALONE),
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
            start = time.perf_counter()
            action()
            best[name] = min(best[name], time.perf_counter() - start)
        calls += 1
    return best


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

    both()  # optimizers need gradients
    return both


def _gather(group: ProcessGroup) -> Callable[[], Any]:
    whole, part = plugrad.zeros(4), plugrad.zeros(4)
    return lambda: all_gather_into_tensor(whole, part, group=group)


def _scatter(group: ProcessGroup) -> Callable[[], Any]:
    whole, part = plugrad.zeros(4), plugrad.zeros(4)
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
    """Forward and backward without a pipeline, with a gradient that is there already."""
    x = plugrad.ones(2, 4)
    layer(x).sum().backward()

    def both() -> None:
        layer(x).sum().backward()

    return both
