"""Pipelines in time: a profile cut in stages, and microbatches that go through them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from plugrad_distributed.distributed.pipelining.orders import (
    Action,
    gpipe,
    interleaved_1f1b,
    looped_bfs,
    one_f_one_b,
)
from plugrad_distributed.planning.profiles import Profile

__all__ = ["Schedule", "crossing_bytes", "order_of", "run_orders", "stages_of_nodes"]


class Schedule(NamedTuple):
    """How long a schedule takes, and how long each rank computes in it."""

    end: float
    busy: list[float]


def order_of(schedule: str, rank: int, ranks: int, stages: int, count: int) -> list[Action]:
    """What a rank does, by the name of the schedule."""
    if schedule == "gpipe":
        return gpipe(rank, count)
    if schedule == "1f1b":
        return one_f_one_b(rank, stages, count)
    if schedule == "looped_bfs":
        return looped_bfs(rank, ranks, stages, count)
    return interleaved_1f1b(rank, ranks, stages, count)


def run_orders(
    orders: Sequence[Sequence[Action]],
    forward: Sequence[float],
    backward: Sequence[float],
    transfer: Sequence[float],
) -> Schedule:
    """Each rank does its list in order, and waits for what other stages send.

    Args:
        forward, backward: seconds of one microbatch, by stage.
        transfer: seconds of sending it from a stage to the next one, or back.

    >>> from plugrad_distributed.distributed.pipelining.orders import gpipe
    >>> from plugrad_distributed.planning.pipeline import run_orders
    >>> run_orders([gpipe(0, 3), gpipe(1, 3)], [1.0, 1.0], [2.0, 2.0], [0.0])
    Schedule(end=12.0, busy=[9.0, 9.0])
    """
    done: dict[Action, float] = {}
    clocks = [0.0] * len(orders)
    busy = [0.0] * len(orders)
    places = [0] * len(orders)
    left = sum(len(order) for order in orders)
    while left:
        before = left
        for rank, order in enumerate(orders):
            while places[rank] < len(order):
                action = order[places[rank]]
                ready = _ready(action, len(forward), transfer, done)
                if ready is None:
                    break
                seconds = (forward if action.kind == "F" else backward)[action.stage]
                clocks[rank] = done[action] = max(clocks[rank], ready) + seconds
                busy[rank] += seconds
                places[rank] += 1
                left -= 1
        if left == before:
            raise RuntimeError("the schedule waits for itself")
    return Schedule(max(clocks), busy)


def _ready(
    action: Action, stages: int, transfer: Sequence[float], done: dict[Action, float]
) -> float | None:
    """When what an action needs is there; None if that is not known yet."""
    kind, stage, microbatch = action
    if kind == "F":
        if stage == 0:
            return 0.0
        needed, way = Action("F", stage - 1, microbatch), transfer[stage - 1]
    elif stage == stages - 1:
        needed, way = Action("F", stage, microbatch), 0.0
    else:
        needed, way = Action("B", stage + 1, microbatch), transfer[stage]
    return done[needed] + way if needed in done else None


def stages_of_nodes(
    profile: Profile, stages: int, cuts: Sequence[int] | None = None
) -> list[int]:
    """The stage of each node: the forward pass is cut before the layers in `cuts`, or where its
    parts take about as long, and what is computed for a stage's backward pass belongs to it.
    Optimizers' nodes get -1.

    Raises:
        ValueError: there are more stages than layers, or cuts that do not make so many.
    """
    layers = profile.layers
    if stages > len(layers):
        raise ValueError(
            f"Pipeline: stages must be at most the number of layers with parameters, "
            f"{len(layers)}, got {stages}"
        )
    forward = [node.seconds for node in profile.nodes if node.phase == "forward"]
    if cuts is None:
        found = _cut(forward, stages)
    elif len(cuts) != stages - 1 or max([0, *cuts]) >= len(layers):
        raise ValueError(
            f"Pipeline: cuts must be {stages - 1} of the layers 1 to {len(layers) - 1} for "
            f"{stages} stages, got {tuple(cuts)}"
        )
    else:
        starts = [layers[cut] for cut in cuts]
        found = [bisect_right(starts, number) for number in range(len(forward))]
    where = {
        name: found[number]
        for number, node in enumerate(profile.nodes[: len(found)])
        for name, _ in node.makes
    }
    where.update({parameter.name: found[parameter.used] for parameter in profile.parameters})
    current = stages - 1
    for node in profile.nodes[len(found) :]:
        if node.phase == "optimizer":
            found.append(-1)
            continue
        current = min(current, max([where[n] for n in node.reads if n in where], default=current))
        found.append(current)
    return found


def _cut(seconds: Sequence[float], parts: int) -> list[int]:
    """Which part each belongs to, so that the longest part is short: by bisection."""
    low, high = max(seconds), sum(seconds)
    best = _filled(seconds, parts, high)
    for _ in range(40):
        middle = (low + high) / 2
        found = _filled(seconds, parts, middle)
        if _longest(seconds, found) <= middle * (1 + 1e-9):
            best, high = found, middle
        else:
            low = middle
    return best


def _filled(seconds: Sequence[float], parts: int, most: float) -> list[int]:
    found: list[int] = []
    part, filled = 0, 0.0
    for number, each in enumerate(seconds):
        # Each further part needs a node.
        needed = len(seconds) - number == parts - 1 - part and bool(found) and filled > 0
        if part < parts - 1 and filled > 0 and (filled + each > most or needed):
            part, filled = part + 1, 0.0
        found.append(part)
        filled += each
    return found


def _longest(seconds: Sequence[float], parts: Sequence[int]) -> float:
    sums: dict[int, float] = {}
    for each, part in zip(seconds, parts, strict=True):
        sums[part] = sums.get(part, 0.0) + each
    return max(sums.values())


def crossing_bytes(profile: Profile, stages: Sequence[int]) -> list[float]:
    """What goes from each stage to the next one in the forward pass."""
    made: dict[str, tuple[int, int]] = {}
    cuts = [0.0] * max([0, *stages])
    reach: dict[str, int] = {}
    for node, stage in zip(profile.nodes, stages, strict=True):
        if node.phase != "forward":
            break
        for name in node.reads:
            if name in made:
                reach[name] = max(reach.get(name, 0), stage)
        made.update({name: (stage, size) for name, size in node.makes})
    for name, last in reach.items():
        stage, size = made[name]
        for cut in range(stage, last):
            cuts[cut] += size
    return cuts
