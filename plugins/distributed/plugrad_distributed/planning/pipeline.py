"""Pipelines in time: a profile cut in stages, and microbatches that go through them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from plugrad_distributed.distributed.pipelining.orders import (
    Action,
    Kind,
    gpipe,
    interleaved_1f1b,
    interleaved_zero_bubble,
    looped_bfs,
    one_f_one_b,
    v_zero_bubble,
)
from plugrad_distributed.distributed.pipelining.stage import in_loops, in_v
from plugrad_distributed.planning.profiles import Profile

__all__ = [
    "Schedule",
    "Stage",
    "crossing_bytes",
    "order_of",
    "rank_of",
    "run_orders",
    "splits_backward",
    "stages_of_nodes",
]


class Schedule(NamedTuple):
    """How long a schedule takes, and how long each rank computes in it; `work` is how long it would
    compute alone on its machine."""

    end: float
    busy: list[float]
    work: list[float]


def order_of(schedule: str, rank: int, ranks: int, stages: int, count: int) -> list[Action]:
    """What a rank does, by the name of the schedule."""
    if schedule == "gpipe":
        return gpipe(rank, count)
    if schedule == "1f1b":
        return one_f_one_b(rank, stages, count)
    if schedule == "looped_bfs":
        return looped_bfs(rank, ranks, stages, count)
    if schedule == "interleaved_1f1b":
        return interleaved_1f1b(rank, ranks, stages, count)
    if schedule == "interleaved_zero_bubble":
        return interleaved_zero_bubble(rank, ranks, stages, count)
    return v_zero_bubble(rank, ranks, count)


def rank_of(schedule: str, stage: int, ranks: int) -> int:
    """The rank that has a stage, by the name of the schedule."""
    return (in_v if schedule == "zbv_zero_bubble" else in_loops)(stage, ranks)


def splits_backward(schedule: str) -> bool:
    """Whether gradients of parameters are computed separately from gradients of inputs."""
    return schedule.endswith("zero_bubble")


class Stage(NamedTuple):
    """Seconds of one microbatch on a rank that is alone on its machine.

    Attributes:
        forward, backward: for computing.
        waits: for waiting for collectives after each.
        transfer: for sending it to the next stage, or back from there.
        weights: for the gradients of parameters, if `backward` does not include them.
    """

    forward: float
    backward: float
    waits: tuple[float, float] = (0.0, 0.0)
    transfer: float = 0.0
    weights: float = 0.0

    def seconds(self, kind: Kind) -> float:
        """Of an action."""
        if kind == "F":
            return self.forward
        return self.weights if kind == "W" else self.backward

    def wait(self, kind: Kind) -> float:
        """After an action."""
        return 0.0 if kind == "W" else self.waits[kind != "F"]


def _undisturbed(active: int, waiting: int) -> float:
    return 1.0


def run_orders(
    orders: Sequence[Sequence[Action]],
    stages: Sequence[Stage],
    slowdown: Callable[[int, int], float] = _undisturbed,
    together: int = 1,
) -> Schedule:
    """Each rank runs its list in order, and waits for messages of other stages.

    Args:
        slowdown: the slowdown of ranks, given how many ranks of a machine compute and how many
            wait.
        together: how many consecutive ranks share a machine.

    >>> from plugrad_distributed.distributed.pipelining.orders import gpipe
    >>> from plugrad_distributed.planning.pipeline import Stage, run_orders
    >>> stages = [Stage(1.0, 2.0), Stage(1.0, 2.0)]
    >>> run_orders([gpipe(0, 3), gpipe(1, 3)], stages)
    Schedule(end=12.0, busy=[9.0, 9.0], work=[9.0, 9.0])
    """
    return _Race(orders, stages, slowdown, together).run()


@dataclass
class _Runner:
    """A rank on its way through its list.

    Attributes:
        left: seconds that its action still computes, on an undisturbed rank; None between actions.
        free: when it may begin the next one.
    """

    order: Sequence[Action]
    place: int = 0
    left: float | None = None
    free: float = 0.0
    busy: float = 0.0
    work: float = 0.0


class _Race:
    """All ranks in time. Ranks of a machine that compute at the same time share its cores."""

    def __init__(
        self,
        orders: Sequence[Sequence[Action]],
        stages: Sequence[Stage],
        slowdown: Callable[[int, int], float],
        together: int,
    ) -> None:
        self.stages = stages
        self.slowdown = slowdown
        self.together = together
        self.runners = [_Runner(order) for order in orders]
        self.done: dict[Action, float] = {}
        self.now = 0.0

    def run(self) -> Schedule:
        end = 0.0
        while any(runner.place < len(runner.order) for runner in self.runners):
            later = [self._begin(runner) for runner in self.runners]
            speeds = self._speeds()
            ends = [
                self.now + runner.left / speed
                for runner, speed in zip(self.runners, speeds, strict=True)
                if runner.left is not None
            ]
            times = [*ends, *(time for time in later if time is not None)]
            if not times:
                raise RuntimeError("the schedule waits for itself")
            following = min(times)
            self._advance(following, speeds)
            end = max(end, following, *(runner.free for runner in self.runners))
        runners = self.runners
        return Schedule(end, [each.busy for each in runners], [each.work for each in runners])

    def _begin(self, runner: _Runner) -> float | None:
        """Begin the next action if possible; otherwise return the time when it is possible, if
        known."""
        if runner.left is not None or runner.place == len(runner.order):
            return None
        action = runner.order[runner.place]
        ready = _ready(action, self.stages, self.done)
        if ready is None:
            return None
        ready = max(ready, runner.free)
        if ready > self.now:
            return ready
        runner.left = self.stages[action.stage].seconds(action.kind)
        runner.work += runner.left
        return None

    def _speeds(self) -> list[float]:
        machines = [number // self.together for number in range(len(self.runners))]
        active, waiting = dict.fromkeys(machines, 0), dict.fromkeys(machines, 0)
        for machine, runner in zip(machines, self.runners, strict=True):
            active[machine] += runner.left is not None
            waiting[machine] += runner.left is None and runner.place < len(runner.order)
        return [1 / self.slowdown(max(1, active[m]), waiting[m]) for m in machines]

    def _advance(self, until: float, speeds: Sequence[float]) -> None:
        spent = until - self.now
        self.now = until
        for runner, speed in zip(self.runners, speeds, strict=True):
            if runner.left is None:
                continue
            runner.busy += spent
            runner.left -= spent * speed
            # What is left of a second through rounding.
            if runner.left > 1e-12:
                continue
            action = runner.order[runner.place]
            wait = self.stages[action.stage].wait(action.kind)
            runner.free = self.done[action] = until + wait
            runner.busy += wait
            runner.place, runner.left = runner.place + 1, None


def _ready(action: Action, stages: Sequence[Stage], done: dict[Action, float]) -> float | None:
    """The time when an action's inputs are available; None if unknown yet."""
    kind, stage, microbatch = action
    if kind == "F":
        if stage == 0:
            return 0.0
        needed, transfer = Action("F", stage - 1, microbatch), stages[stage - 1].transfer
    elif kind == "W":
        needed, transfer = Action("I", stage, microbatch), 0.0
    elif stage == len(stages) - 1:
        needed, transfer = Action("F", stage, microbatch), 0.0
    else:
        needed, transfer = Action(kind, stage + 1, microbatch), stages[stage].transfer
    return done[needed] + transfer if needed in done else None


def stages_of_nodes(profile: Profile, stages: int, cuts: Sequence[int] | None = None) -> list[int]:
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
