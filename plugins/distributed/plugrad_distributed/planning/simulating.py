"""simulate and sweep: predictions from a profile, strategies and costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from plugrad_distributed.data_parallel.buckets import FIRST_BUCKET_BYTES
from plugrad_distributed.distributed.pipelining.orders import Action
from plugrad_distributed.planning.costs import Call, Costs
from plugrad_distributed.planning.data import (
    Flow,
    Price,
    flow_of_buckets,
    flow_of_units,
    in_units,
)
from plugrad_distributed.planning.pipeline import (
    Schedule,
    crossing_bytes,
    order_of,
    run_orders,
    stages_of_nodes,
)
from plugrad_distributed.planning.predictions import Memory, Prediction, Table
from plugrad_distributed.planning.profiles import Profile
from plugrad_distributed.planning.strategies import (
    DataParallel,
    FullySharded,
    Pipeline,
    Strategy,
    TensorParallel,
)
from plugrad_distributed.planning.tensor import split_tensors

__all__ = ["simulate", "sweep"]

MIB = 1 << 20
Data = DataParallel | FullySharded | None


def simulate(
    profile: Profile,
    strategy: Strategy | Sequence[Strategy],
    ranks: int,
    costs: Costs,
    *,
    ranks_per_machine: int | None = None,
    memory: float | None = None,
) -> Prediction:
    """Step time and memory on some ranks.

    Each data parallel rank has a batch of the profiled size, so more ranks do more work in a step.
    Ranks that are tensor parallel lie beside each other, those of a pipeline are further apart,
    those that are data parallel furthest. A group whose ranks are on several machines has the
    costs between machines for all its messages, and shares a machine's network with the other
    groups there.

    Args:
        strategy: one, or several: data parallel or fully sharded, tensor parallel, pipeline.
        ranks: of all together.
        costs: of communication, with the cores of a machine.
        ranks_per_machine: None if all are on one machine.
        memory: bytes that a rank has; None for enough.

    Raises:
        ValueError: the ranks do not make up a mesh, or the model cannot be split so.

    >>> from plugrad.distributed.simulate import Costs, DataParallel, simulate
    >>> from plugrad.distributed.simulate import NodeCost, ParameterCost, Profile
    >>> nodes = (NodeCost("linear", "forward", 1.0), NodeCost("linear_backward", "backward", 2.0))
    >>> profile = Profile(nodes, (ParameterCost("w", (500, 500), 1_000_000, 0, 1),), step_seconds=3)
    >>> round(simulate(profile, DataParallel(), 4, Costs.of(0.1, 1e6)).step_time, 6)
    4.9
    """
    parts = list(strategy) if isinstance(strategy, Sequence) else [strategy]
    mesh = _mesh(parts, ranks)
    per_machine = ranks if ranks_per_machine is None else ranks_per_machine
    if per_machine < 1:
        raise ValueError(
            f"simulate(): ranks_per_machine must be positive, got {ranks_per_machine!r}"
        )
    run = _Run(profile, mesh, costs, min(ranks, per_machine), ranks > per_machine)
    data = next((each for each in parts if isinstance(each, DataParallel | FullySharded)), None)
    pipeline = next((each for each in parts if isinstance(each, Pipeline)), None)
    if mesh.data == 1:
        data = None
    if pipeline is None or mesh.pipeline * pipeline.stages_per_rank == 1:
        found = run.whole(data)
    else:
        found = run.staged(data, pipeline)
    exceeds = memory is not None and found.memory.total > memory
    return replace(found, strategy=" + ".join(map(str, parts)), exceeds=exceeds)


def sweep(
    profile: Profile,
    strategies: Iterable[Strategy | Sequence[Strategy]],
    ranks: Iterable[int],
    costs: Costs,
    *,
    ranks_per_machine: int | None = None,
    memory: float | None = None,
) -> Table:
    """`simulate` for each strategy and number of ranks, as a table; what the model cannot be split
    into is left out."""
    counts = list(ranks)
    rows = []
    for strategy in strategies:
        for count in counts:
            try:
                row = simulate(
                    profile, strategy, count, costs,
                    ranks_per_machine=ranks_per_machine, memory=memory,
                )  # fmt: skip
            except ValueError:
                continue
            rows.append(row)
    return Table(tuple(rows))


@dataclass(frozen=True)
class _Mesh:
    data: int
    tensor: int
    pipeline: int


def _mesh(parts: Sequence[Strategy], ranks: int) -> _Mesh:
    if not isinstance(ranks, int) or ranks < 1:
        raise ValueError(f"simulate(): ranks must be a positive integer, got {ranks!r}")
    kinds = [type(DataParallel() if isinstance(p, FullySharded) else p) for p in parts]
    known = (DataParallel, FullySharded, TensorParallel, Pipeline)
    if not parts or not all(isinstance(p, known) for p in parts) or len(set(kinds)) < len(kinds):
        raise ValueError(
            "simulate(): strategy must be of DataParallel or FullySharded, TensorParallel and "
            f"Pipeline, one of each at most, got {list(parts)}"
        )
    tensor = next((each for each in parts if isinstance(each, TensorParallel)), None)
    pipeline = next((each for each in parts if isinstance(each, Pipeline)), None)
    width = 1 if tensor is None else tensor.ranks
    depth = 1 if pipeline is None else pipeline.stages
    if width is None and depth is None:
        raise ValueError(
            "simulate(): TensorParallel and Pipeline cannot both have all ranks that are left: "
            "say how many one of them has"
        )
    if width is None:
        width = max(1, ranks // (depth or 1))
    if depth is None:
        depth = max(1, ranks // width)
    data = ranks // (width * depth)
    if data * width * depth != ranks or (data > 1 and DataParallel not in kinds):
        raise ValueError(
            f"simulate(): {ranks} ranks are not {width} tensor parallel times {depth} in a "
            "pipeline" + (" times any number" if DataParallel in kinds else "")
        )
    return _Mesh(data, width, depth)


class _Run:
    """One prediction: the profile as one tensor parallel rank has it, and prices of collectives."""

    def __init__(
        self, profile: Profile, mesh: _Mesh, costs: Costs, per_machine: int, far: bool
    ) -> None:
        self.mesh = mesh
        self.costs = costs
        self.before = profile
        split = split_tensors(profile, mesh.tensor)
        self.profile = split.profile
        self.split = split
        self.slowdown = costs.slowdown(per_machine)
        stride = mesh.tensor * mesh.pipeline
        self.tensor = _Prices(costs, mesh.tensor, far and mesh.tensor > per_machine, 1)
        self.hop = _Prices(costs, 2, far and stride > per_machine, min(mesh.tensor, per_machine))
        self.data = _Prices(costs, mesh.data, far, min(stride, per_machine))

    # What a node takes

    def blocked(self, number: int, count: int) -> list[Call]:
        """The collectives of tensor parallelism after a node, for one of `count` microbatches."""
        calls = self.split.calls.get(number, ())
        return [self.tensor.call(name, size / count) for name, size in calls]

    def computed(self, number: int, count: int, part: float = 1.0) -> float:
        node = self.profile.nodes[number]
        return (node.fixed + (node.seconds - node.fixed) * part / count) * self.slowdown

    def seconds(self, number: int, count: int = 1) -> float:
        waits = sum(call.seconds for call in self.blocked(number, count))
        return self.computed(number, count) + waits

    def _reduced(self, data: Data, profile: Profile, seconds: Sequence[float]) -> Flow:
        """The backward pass, while which gradients are reduced."""
        overlap = self.costs.overlap
        if data is None or not profile.parameters:
            flow = Flow(overlap)
            flow.compute(_of(profile, seconds, "backward"))
            return flow
        if isinstance(data, FullySharded):
            limits = [data.unit_mb * MIB]
            reduce, copy = self.data.of("reduce_scatter"), 0.0
        else:
            limits = [FIRST_BUCKET_BYTES, data.bucket_cap_mb * MIB]
            reduce, copy = self.data.of("all_reduce"), self.costs.copy * self.slowdown
        return flow_of_buckets(profile, seconds, limits, reduce, overlap=overlap, copy=copy)

    def _gathered(self, data: FullySharded, seconds: Sequence[float]) -> Flow:
        """Both passes, while which parameters are gathered and gradients are scattered."""
        units = in_units(self.profile.parameters, data.unit_mb * MIB, data.cuts)
        gather, scatter = self.data.of("all_gather"), self.data.of("reduce_scatter")
        overlap = self.costs.overlap
        return flow_of_units(self.profile, seconds, units, gather, scatter, overlap=overlap)

    # Without a pipeline

    def whole(self, data: Data) -> Prediction:
        numbers = range(len(self.profile.nodes))
        part = 1 / self.mesh.data if isinstance(data, FullySharded) else 1.0
        seconds = [self.seconds(number) for number in numbers]
        if isinstance(data, FullySharded):
            flow, forward = self._gathered(data, seconds), 0.0
        else:
            flow = self._reduced(data, self.profile, seconds)
            forward = _of(self.profile, seconds, "forward")
        updates = [
            self.computed(number, 1, part)
            for number in numbers
            if self.profile.nodes[number].phase == "optimizer"
        ]
        blocked = [call for number in numbers for call in self.blocked(number, 1)]
        end = forward + flow.end + sum(updates)
        waits = sum(call.seconds for call in blocked)
        parts = _Parts(
            end=end,
            compute=end - waits - flow.exposed - flow.copied,
            fixed=sum(node.fixed for node in self.profile.nodes),
            slowdown=self.slowdown,
            copied=flow.copied,
            blocked=blocked,
            beside=flow.calls,
            exposed=flow.exposed,
        )
        peak = self.profile.peak_bytes()
        return self._predicted(parts, self._memory(data, self.profile, peak))

    # With a pipeline

    def staged(self, data: Data, pipeline: Pipeline) -> Prediction:
        depth, count = self.mesh.pipeline, pipeline.microbatches
        total = depth * pipeline.stages_per_rank
        stages = stages_of_nodes(self.profile, total, pipeline.cuts)
        nodes = self.profile.nodes
        times: dict[str, list[float]] = {"forward": [0.0] * total, "backward": [0.0] * total}
        for number, stage in enumerate(stages):
            if stage >= 0:
                times[nodes[number].phase][stage] += self.seconds(number, count)
        crossing = crossing_bytes(self.profile, stages)
        transfer = [self.hop.call("send", size / count).seconds for size in crossing]
        orders = [order_of(pipeline.schedule, rank, depth, total, count) for rank in range(depth)]
        schedule = run_orders(orders, times["forward"], times["backward"], transfer)
        rank = max(range(depth), key=lambda each: schedule.busy[each])
        parts = self._staged_parts(data, stages, schedule, rank, count)
        sizes = self.profile.sizes
        memories = []
        for each in range(depth):
            own = self._part(stages, each)
            flight = [_in_flight(orders[each], stage) for stage in range(each, total, depth)]
            kept = [self._kept(stages, stage, sizes) for stage in range(each, total, depth)]
            live = sum(a * b for a, b in zip(flight, kept, strict=True)) / count
            # While a microbatch runs, more lives than what is kept of it.
            extra = max(0.0, self.profile.peak_bytes() - self.profile.saved_bytes())
            memories.append(self._memory(data, own, live + extra / count / total))
        return self._predicted(parts, max(memories, key=lambda memory: memory.total))

    def _staged_parts(
        self, data: Data, stages: Sequence[int], schedule: Schedule, rank: int, count: int
    ) -> _Parts:
        """The time of the rank that computes most. Of data parallelism, gradients are reduced
        while the last microbatch runs backward; parameters are gathered once in a step."""
        own = self._part(stages, rank)
        mine = [
            n for n, stage in enumerate(stages) if stage >= 0 and stage % self.mesh.pipeline == rank
        ]
        chosen = set(mine)
        seconds = [
            self.seconds(number, count) if number in chosen else 0.0
            for number in range(len(self.profile.nodes))
        ]
        flow = self._reduced(data, own, seconds)
        calls, exposed = flow.calls, flow.exposed
        part = own.parameter_bytes / max(self.profile.parameter_bytes, 1)
        if isinstance(data, FullySharded):
            gather = self.data.call("all_gather", own.parameter_bytes)
            calls, exposed = [*calls, gather], exposed + gather.seconds
            part /= self.mesh.data
        updates = sum(
            self.computed(number, 1, part) for number, stage in enumerate(stages) if stage < 0
        )
        blocked = [c for n in mine for c in self.blocked(n, count)] * count
        waits = sum(call.seconds for call in blocked)
        fixed = sum(self.profile.nodes[n].fixed for n in mine) * count
        return _Parts(
            end=schedule.end + exposed + flow.copied + updates,
            compute=schedule.busy[rank] - waits + updates,
            fixed=fixed,
            slowdown=self.slowdown,
            copied=flow.copied,
            blocked=blocked,
            beside=calls,
            exposed=exposed,
            idle=schedule.end - schedule.busy[rank],
        )

    def _part(self, stages: Sequence[int], rank: int) -> Profile:
        """The profile with the parameters of a rank of the pipeline."""
        depth = self.mesh.pipeline
        own = [p for p in self.profile.parameters if stages[p.used] % depth == rank]
        return replace(self.profile, parameters=tuple(own))

    def _kept(self, stages: Sequence[int], stage: int, sizes: dict[str, int]) -> float:
        """Bytes that a stage keeps of all microbatches for its backward pass."""
        needed = {n for node in self.profile.nodes if node.phase == "backward" for n in node.reads}
        made = {
            name
            for node, each in zip(self.profile.nodes, stages, strict=True)
            if each == stage and node.phase == "forward"
            for name, _ in node.makes
        }
        return sum(sizes.get(name, 0) for name in made & needed)

    # What comes out

    def _memory(self, data: Data, own: Profile, activations: float) -> Memory:
        sharded = isinstance(data, FullySharded)
        part = 1 / self.mesh.data if sharded else 1.0
        whole = own.parameter_bytes
        state = own.optimizer_bytes * whole / max(self.profile.parameter_bytes, 1)
        buffers = own.buffer_bytes * 1.0
        if isinstance(data, FullySharded) and own.parameters:
            units = in_units(own.parameters, data.unit_mb * MIB, data.cuts)
            sizes = [sum(parameter.bytes for parameter in unit) for unit in units]
            # One that is used and one that is gathered, and the gradient of one. In a pipeline
            # all stay gathered for the whole step.
            pairs = [a + b for a, b in zip(sizes, [*sizes[1:], 0], strict=True)]
            buffers += (max(pairs) if self.mesh.pipeline == 1 else whole) + max(sizes)
        elif data is not None:
            buffers += whole  # buckets
        return Memory(whole * part, whole * part, state * part, activations, buffers)

    def _predicted(self, parts: _Parts, memory: Memory) -> Prediction:
        mesh = self.mesh
        before = self.before.step_seconds or self.before.total_seconds
        ideal = before / (mesh.tensor * mesh.pipeline)
        waits = sum(call.seconds for call in parts.blocked)
        return Prediction(
            strategy="",
            ranks=mesh.data * mesh.tensor * mesh.pipeline,
            mesh=(mesh.data, mesh.tensor, mesh.pipeline),
            step_time=parts.end,
            compute=parts.compute,
            communication=waits + sum(call.seconds for call in parts.beside) + parts.copied,
            exposed=parts.exposed + waits + parts.copied,
            idle=parts.idle,
            memory=memory,
            batches=mesh.data,
            shares=parts.shares(),
            efficiency=ideal / parts.end,
        )


@dataclass(frozen=True)
class _Prices:
    """What collectives cost in a group."""

    costs: Costs
    ranks: int
    far: bool
    share: float

    def call(self, collective: str, size: float) -> Call:
        return self.costs.call(collective, self.ranks, size, far=self.far, share=self.share)

    def of(self, collective: str) -> Price:
        return lambda size: self.call(collective, size)


@dataclass(frozen=True)
class _Parts:
    """What the seconds of a step go to.

    Attributes:
        fixed: calling operators, before the slowdown.
        blocked: collectives that nothing runs beside.
        beside: collectives beside kernels, of which `exposed` seconds are waited for.
    """

    end: float
    compute: float
    fixed: float
    slowdown: float
    copied: float
    blocked: list[Call]
    beside: list[Call]
    exposed: float
    idle: float = 0.0

    def shares(self) -> tuple[tuple[str, float], ...]:
        useful = self.compute / self.slowdown
        fixed = min(self.fixed, useful)
        found = {
            "compute": useful - fixed,
            "calls of operators": fixed,
            "shared cores": self.compute - useful,
            "copies": self.copied,
            "pipeline bubble": self.idle,
        }
        waited = sum(call.seconds for call in self.beside)
        scale = self.exposed / waited if waited else 0.0
        for calls, part in ((self.blocked, 1.0), (self.beside, scale)):
            for call in calls:
                for what in ("latency", "bandwidth"):
                    name = f"{call.collective} {what}"
                    found[name] = found.get(name, 0.0) + getattr(call, what) * part
        pairs = [(name, seconds) for name, seconds in found.items() if seconds > 0]
        return tuple(sorted(pairs, key=lambda pair: -pair[1]))


def _of(profile: Profile, seconds: Sequence[float], phase: str) -> float:
    pairs = zip(profile.nodes, seconds, strict=True)
    return math.fsum(each for node, each in pairs if node.phase == phase)


def _in_flight(order: Sequence[Action], stage: int) -> int:
    """How many microbatches a stage keeps at most."""
    most = live = 0
    for action in order:
        if action.stage == stage:
            live += 1 if action.kind == "F" else -1
            most = max(most, live)
    return most
