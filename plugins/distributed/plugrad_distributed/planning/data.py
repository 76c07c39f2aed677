"""Data parallel ranks in time: gradients that are reduced while backward runs, parameters that are
gathered before they are used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from plugrad_distributed.planning.costs import Call
from plugrad_distributed.planning.profiles import ParameterCost, Profile

__all__ = [
    "Flow",
    "UnitCosts",
    "flow_of_buckets",
    "flow_of_units",
    "in_buckets",
    "in_units",
]

Price = Callable[[float], Call]


@dataclass
class Flow:
    """Computing, with communication beside it.

    Attributes:
        end: when both are over.
        busy: what is computed, without waiting.
        copied: seconds of copies to and from buckets, which are part of `end` and not of `busy`.
        overlap: which part of communication runs beside kernels.
        beside: seconds that each collective takes to be started and polled beside kernels.
        calls: the collectives.
    """

    overlap: float
    beside: float = 0.0
    end: float = 0.0
    busy: float = 0.0
    copied: float = 0.0
    calls: list[Call] = field(default_factory=list)
    # When the channel is free: one collective runs at a time.
    _free: float = 0.0

    def compute(self, seconds: float) -> None:
        self.busy += seconds
        self.end += seconds

    def copy(self, seconds: float) -> None:
        self.copied += seconds
        self.end += seconds

    def send(self, call: Call, since: float | None = None) -> float:
        """Start a collective, now or at an earlier time; when it is over."""
        self.calls.append(call)
        start = max(self._free, self.end if since is None else since)
        self._free = start + call.seconds
        # The part that does not run beside kernels stops them.
        self.end += (1 - self.overlap) * call.seconds
        if call.seconds:
            self.end += self.beside
        return self._free

    def wait(self, until: float | None = None) -> None:
        """Go on when a collective is over, or all are."""
        self.end = max(self.end, self._free if until is None else until)

    @property
    def exposed(self) -> float:
        """Waiting for communication."""
        return max(0.0, self.end - self.busy - self.copied)


def in_buckets(
    parameters: Sequence[ParameterCost], limits: Sequence[float]
) -> list[list[ParameterCost]]:
    """Parameters in the order of their gradients, cut where a bucket is full; the last of the
    limits, in bytes, is for all further buckets."""
    found: list[list[ParameterCost]] = []
    size = 0.0
    full = True
    for parameter in parameters:
        if full:
            found.append([])
            size = 0.0
        found[-1].append(parameter)
        size += parameter.bytes
        full = size >= limits[min(len(found) - 1, len(limits) - 1)]
    return found


def flow_of_buckets(
    profile: Profile,
    seconds: Sequence[float],
    limits: Sequence[float],
    reduce: Price,
    *,
    overlap: float,
    copy: float,
    beside: float = 0.0,
) -> Flow:
    """The backward pass with its buckets.

    Args:
        seconds: what each node takes.
        reduce: what an all_reduce costs, by its bytes.
        copy: seconds per byte. Gradients are copied to buckets, divided, and copied back.
        beside: seconds that each all_reduce takes to be started.
    """
    flow = Flow(overlap, beside)
    buckets = in_buckets(profile.parameters, limits)
    sizes = [sum(parameter.bytes for parameter in bucket) for bucket in buckets]
    ready = [max(parameter.arrival for parameter in bucket) for bucket in buckets]
    following = 0
    for number, node in enumerate(profile.nodes):
        if node.phase == "backward":
            flow.compute(seconds[number])
        while following < len(buckets) and ready[following] <= number:
            flow.copy(2 * copy * sizes[following])
            flow.send(reduce(sizes[following]))
            following += 1
    flow.wait()
    flow.copy(copy * sum(sizes))
    return flow


def in_units(
    parameters: Sequence[ParameterCost], least: float, cuts: Sequence[int] | None = None
) -> list[list[ParameterCost]]:
    """Parameters in the order of their use. A unit has all parameters of a layer, and layers until
    it has so many bytes, or up to the next layer in `cuts`."""
    found: list[list[ParameterCost]] = []
    layer = -1
    for parameter in sorted(parameters, key=lambda each: each.used):
        same = bool(found) and found[-1][-1].used == parameter.used
        layer += not same
        if cuts is None:
            begins = not found or sum(p.bytes for p in found[-1]) >= least
        else:
            begins = not found or layer in cuts
        if begins and not same:
            found.append([parameter])
        else:
            found[-1].append(parameter)
    return found


@dataclass(frozen=True)
class UnitCosts:
    """What units of fully sharded parameters cost a rank.

    Attributes:
        ranks: over which they are split.
        gather, scatter: what the collectives cost, by the bytes of the whole.
        unit, parameter: seconds of Python's time of a unit, and of each of its parameters.
        copy: seconds per byte that is copied.
        beside: seconds that each collective takes to be started.
    """

    ranks: int
    gather: Price
    scatter: Price
    unit: float = 0.0
    parameter: float = 0.0
    copy: float = 0.0
    beside: float = 0.0


class _Unit(NamedTuple):
    bytes: float
    python: float


def flow_of_units(
    profile: Profile,
    seconds: Sequence[float],
    units: Sequence[Sequence[ParameterCost]],
    costs: UnitCosts,
    *,
    overlap: float,
) -> Flow:
    """Forward and backward with parameters that are gathered before each, one unit ahead, and
    gradients that are reduced and scattered after."""
    flow = Flow(overlap, costs.beside)
    # A half of Python's time in each pass.
    made = [
        _Unit(sum(p.bytes for p in unit), (costs.unit + costs.parameter * len(unit)) / 2)
        for unit in units
    ]
    # Forward: a unit's nodes are those up to the first use of the next one.
    first = [0, *(min(p.used for p in unit) for unit in units[1:])]
    ends = [*first[1:], _end(profile, "forward")]
    pieces = [sum(seconds[a:b]) for a, b in zip(first, ends, strict=True)]
    _run_units(flow, made, pieces, costs, scatters=False)
    # Backward: up to the last gradient of the unit.
    arrivals = sorted(
        (max(p.arrival for p in unit) + 1, each) for unit, each in zip(units, made, strict=True)
    )
    start = _end(profile, "forward")
    pieces = []
    for arrival, _ in arrivals:
        pieces.append(sum(seconds[start:arrival]))
        start = max(start, arrival)
    pieces[-1] += sum(seconds[start : _end(profile, "backward")])
    _run_units(flow, [each for _, each in arrivals], pieces, costs, scatters=True)
    flow.wait()
    return flow


def _end(profile: Profile, phase: str) -> int:
    return max([-1, *(n for n, node in enumerate(profile.nodes) if node.phase == phase)]) + 1


def _run_units(
    flow: Flow,
    units: Sequence[_Unit],
    pieces: Sequence[float],
    costs: UnitCosts,
    *,
    scatters: bool,
) -> None:
    """One pass. Before a collective its parts are copied to one piece of memory, and after it the
    wholes are copied from it, if there are several parts. A rank alone copies in place of it."""
    part = 1 / costs.ranks
    alone = costs.ranks == 1

    def gather(unit: _Unit) -> float:
        flow.copy(costs.copy * unit.bytes * (part + alone))
        return flow.send(costs.gather(unit.bytes))

    there = gather(units[0])
    reduced: float | None = None
    for number, (unit, piece) in enumerate(zip(units, pieces, strict=True)):
        flow.compute(unit.python)
        flow.wait(there)
        if not alone:
            flow.copy(costs.copy * unit.bytes)
        if number + 1 < len(pieces):
            there = gather(units[number + 1])
        flow.compute(piece)
        if scatters:
            flow.copy(costs.copy * unit.bytes * (1 + alone))
            # One reduction at a time; its result is divided.
            if reduced is not None:
                flow.wait(reduced)
            if not alone:
                flow.copy(costs.copy * unit.bytes * part)
            reduced = flow.send(costs.scatter(unit.bytes))
