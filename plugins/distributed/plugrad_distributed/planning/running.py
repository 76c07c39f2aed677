"""Run: one prediction, of a profile, a mesh and costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from plugrad_distributed.data_parallel.buckets import FIRST_BUCKET_BYTES
from plugrad_distributed.distributed.pipelining.orders import Action
from plugrad_distributed.planning.costs import Call, Costs
from plugrad_distributed.planning.data import (
    Flow,
    Price,
    UnitCosts,
    flow_of_buckets,
    flow_of_units,
    in_units,
)
from plugrad_distributed.planning.pipeline import (
    Schedule,
    Stage,
    crossing_bytes,
    order_of,
    rank_of,
    run_orders,
    splits_backward,
    stages_of_nodes,
)
from plugrad_distributed.planning.predictions import Memory, Prediction
from plugrad_distributed.planning.profiles import ParameterCost, Profile
from plugrad_distributed.planning.strategies import DataParallel, FullySharded, Pipeline
from plugrad_distributed.planning.tensor import Split, split_tensors

__all__ = ["Data", "Mesh", "Run"]

MIB = 1 << 20
Data = DataParallel | FullySharded | None


@dataclass(frozen=True)
class Mesh:
    """How many ranks are data parallel, tensor parallel and in a pipeline; `splits` is whether
    layers are DTensors."""

    data: int
    tensor: int
    pipeline: int
    splits: bool = False


class Run:
    """One prediction: the profile as one tensor parallel rank has it, and prices of collectives.

    Args:
        per_machine: ranks of a machine.
        far: whether there are several machines.
        often: whether ranks wait for each other several times in a pass.
    """

    def __init__(
        self,
        profile: Profile,
        mesh: Mesh,
        costs: Costs,
        per_machine: int,
        far: bool,
        *,
        often: bool = False,
    ) -> None:
        self.mesh = mesh
        self.costs = costs
        self.before = profile
        self.split = Split(profile, {})
        if mesh.splits:
            self.split = split_tensors(profile, mesh.tensor, costs.overheads.layer)
        self.profile = self.split.profile
        self.gradients = {each.grad for each in self.profile.parameters}
        slowdown = costs.slowdown_in_turns if often else costs.slowdown
        self.slowdown = slowdown(per_machine)
        self.per_machine = per_machine
        stride = mesh.tensor * mesh.pipeline
        self.tensor = _Prices(costs, mesh.tensor, far and mesh.tensor > per_machine, 1)
        self.hop = _Prices(costs, 2, far and stride > per_machine, min(mesh.tensor, per_machine))
        self.data = _Prices(costs, mesh.data, far, min(stride, per_machine))
        self.overlap = costs.beside(far=far)

    # What a node takes

    def blocked(self, number: int, count: int) -> list[Call]:
        """The collectives of tensor parallelism after a node, for one of `count` microbatches."""
        calls = self.split.calls.get(number, ())
        return [self.tensor.call(name, size / count) for name, size in calls]

    def computed(self, number: int, count: int, part: float = 1.0) -> float:
        """Seconds of a node on an undisturbed rank, for a part of the parameters."""
        node = self.profile.nodes[number]
        varying = node.held + (node.seconds - node.fixed - node.held) * part / count
        return node.fixed + max(0.0, varying)

    def seconds(self, number: int, count: int = 1) -> float:
        """Seconds of a node while all ranks compute, with collectives that nothing runs beside."""
        waits = sum(call.seconds for call in self.blocked(number, count))
        return self.computed(number, count) * self.slowdown + waits

    def updates(self, data: Data, own: Profile) -> tuple[float, float]:
        """Seconds of the optimizer's step of an undisturbed rank with some of the parameters, and
        which of them are fixed."""
        share = own.parameter_bytes / max(self.profile.parameter_bytes, 1)
        part = 1 / self.mesh.data if isinstance(data, FullySharded) else 1.0
        nodes = [node for node in self.profile.nodes if node.phase == "optimizer"]
        updated = self._updated(data, own)
        overheads = self.costs.overheads
        fixed = sum(node.fixed for node in nodes) + overheads.updated * len(updated)
        found = fixed + sum(node.seconds - node.fixed for node in nodes) * part * share
        found += overheads.updated_byte * sum(each.bytes for each in updated) * part
        return found, fixed

    def _updated(self, data: Data, own: Profile) -> list[ParameterCost]:
        """The parameters that are DTensors when the optimizer runs."""
        names = {each.name for each in self.split.updated}
        sharded = isinstance(data, FullySharded)
        return [each for each in own.parameters if sharded or each.name in names]

    def _reduced(self, data: Data, profile: Profile, seconds: Sequence[float]) -> Flow:
        """The backward pass, while which gradients are reduced."""
        overlap = self.overlap
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
        beside = self.costs.overheads.beside * self.slowdown
        return flow_of_buckets(
            profile, seconds, limits, reduce, overlap=overlap, copy=copy, beside=beside
        )

    def _gathered(self, data: FullySharded, seconds: Sequence[float]) -> Flow:
        """Both passes, while which parameters are gathered and gradients are scattered."""
        overheads, slowdown = self.costs.overheads, self.slowdown
        costs = UnitCosts(
            self.mesh.data,
            self.data.of("all_gather"),
            self.data.of("reduce_scatter"),
            overheads.unit * slowdown,
            overheads.gathered * slowdown,
            (overheads.moved or self.costs.copy) * slowdown,
            overheads.beside * slowdown,
        )
        units = self.units(data, self.profile)
        return flow_of_units(self.profile, seconds, units, costs, overlap=self.overlap)

    def units(self, data: FullySharded, own: Profile) -> list[list[ParameterCost]]:
        """The units of some parameters."""
        return in_units(own.parameters, data.unit_mb * MIB, data.cuts)

    # Without a pipeline

    def whole(self, data: Data) -> Prediction:
        numbers = range(len(self.profile.nodes))
        seconds = [self.seconds(number) for number in numbers]
        fixed = sum(node.fixed for node in self.profile.nodes if node.phase != "optimizer")
        if isinstance(data, FullySharded) and self.profile.parameters:
            flow, forward = self._gathered(data, seconds), 0.0
            overheads = self.costs.overheads
            fixed += overheads.unit * len(self.units(data, self.profile))
            fixed += overheads.gathered * len(self.profile.parameters)
        else:
            flow = self._reduced(data, self.profile, seconds)
            forward = _of(self.profile, seconds, "forward")
        update, fixed_update = self.updates(data, self.profile)
        blocked = [call for number in numbers for call in self.blocked(number, 1)]
        end = forward + flow.end + update * self.slowdown
        waits = sum(call.seconds for call in blocked)
        parts = Parts(
            end=end,
            compute=end - waits - flow.exposed - flow.copied,
            fixed=fixed + fixed_update,
            slowdown=self.slowdown,
            copied=flow.copied,
            blocked=blocked,
            beside=flow.calls,
            exposed=flow.exposed,
        )
        part = 1 / self.mesh.data if isinstance(data, FullySharded) else 1.0
        peak = self.profile.peak_beside_gradients(part)
        return self._predicted(parts, self._memory(data, self.profile, peak))

    # With a pipeline

    def staged(self, data: Data, pipeline: Pipeline) -> Prediction:
        depth, count = self.mesh.pipeline, pipeline.microbatches
        total = depth * pipeline.stages_per_rank
        stages = stages_of_nodes(self.profile, total, pipeline.cuts)
        crossing = crossing_bytes(self.profile, stages)
        orders = [order_of(pipeline.schedule, rank, depth, total, count) for rank in range(depth)]
        # By stage, the rank that has it.
        ranks = [rank_of(pipeline.schedule, stage, depth) for stage in range(total)]
        for stage in range(total - 1):
            if ranks[stage] == ranks[stage + 1]:
                crossing[stage] = 0.0  # handed over
        parts = [self._part(stages, ranks, rank) for rank in range(depth)]
        times = self._stage_times(stages, crossing, pipeline.schedule, count)
        # Ranks of a machine: some behind each other, and others that do the same.
        behind = max(1, min(depth, self.per_machine // self.mesh.tensor))
        beside = max(1, self.per_machine // behind)
        schedule = run_orders(
            orders,
            times,
            lambda active, waiting: self.costs.slowdown(active * beside, waiting * beside),
            behind,
        )
        rank = max(range(depth), key=lambda each: schedule.busy[each])
        memories = [
            self._stage_memory(data, parts[each], stages, crossing, orders[each], count)
            for each in range(depth)
        ]
        most = max(memories, key=lambda memory: memory.total)
        nodes = [n for n, stage in enumerate(stages) if stage >= 0 and ranks[stage] == rank]
        found = self._staged_parts(data, parts[rank], nodes, schedule, rank, count)
        return self._predicted(found, most)

    def _stage_times(
        self, stages: Sequence[int], crossing: Sequence[float], schedule: str, count: int
    ) -> list[Stage]:
        """What the stages take for a microbatch."""
        total = max(stages) + 1
        splits = splits_backward(schedule)
        work = {name: [0.0] * total for name in ("forward", "backward", "weights")}
        waits = {"forward": [0.0] * total, "backward": [0.0] * total}
        for number, stage in enumerate(stages):
            if stage >= 0:
                phase = self.profile.nodes[number].phase
                whole = self.computed(number, count)
                later = self._later(number, stage, count) if splits else (whole, 0.0)
                work[phase][stage] += later[0]
                work["weights"][stage] += later[1]
                waits[phase][stage] += sum(call.seconds for call in self.blocked(number, count))
        found = []
        # The shapes go ahead of each tensor, as a message of their own.
        ahead = self.hop.call("send", 8).seconds
        overheads = self.costs.overheads
        late = self.costs.late if self.per_machine > self.costs.cores else 0.0
        for stage in range(total):
            size = sum(p.bytes for p in self.profile.parameters if stages[p.used] == stage)
            python = overheads.microbatch / 2
            # Gradients of further microbatches are added to the first one's.
            work["weights" if splits else "backward"][stage] += (
                self.costs.add * size * (count - 1) / count
            )
            if splits and stage:
                work["weights"][stage] += overheads.split
            sent = 0.0
            if stage + 1 < total and crossing[stage]:
                sent = ahead + self.hop.call("send", crossing[stage] / count).seconds + late
            # From and to the stage before, and the one behind.
            inward = bool(stage and crossing[stage - 1])
            received = overheads.received * inward + overheads.sent * bool(sent)
            returned = overheads.received * bool(sent) + overheads.sent * inward
            found.append(
                Stage(
                    work["forward"][stage] + python + received,
                    work["backward"][stage] + python + returned,
                    (waits["forward"][stage], waits["backward"][stage]),
                    sent,
                    work["weights"][stage],
                )
            )
        return found

    def _later(self, number: int, stage: int, count: int) -> tuple[float, float]:
        """What a node takes if backward comes in two parts, in the first and in the second one.
        What makes gradients of inputs and of parameters is called in both. The first stage has no
        input with a gradient."""
        node, whole = self.profile.nodes[number], self.computed(number, count)
        if node.phase != "backward":
            return whole, 0.0
        made = {name for name, _ in node.makes}
        own = made & self.gradients
        if stage == 0 or (own and own == made):
            return 0.0, whole
        if not own:
            return whole, 0.0
        half = node.fixed + (whole - node.fixed) / 2
        return half, half

    def _staged_parts(
        self,
        data: Data,
        own: Profile,
        mine: Sequence[int],
        schedule: Schedule,
        rank: int,
        count: int,
    ) -> Parts:
        """The time of the rank that computes most. With data parallelism, gradients are reduced
        while the last microbatch runs backward; parameters are gathered once in a step."""
        chosen = set(mine)
        seconds = [
            self.seconds(number, count) if number in chosen else 0.0
            for number in range(len(self.profile.nodes))
        ]
        flow = self._reduced(data, own, seconds)
        calls, exposed = flow.calls, flow.exposed
        if isinstance(data, FullySharded):
            gather = self.data.call("all_gather", own.parameter_bytes)
            calls, exposed = [*calls, gather], exposed + gather.seconds
        update, fixed_update = self.updates(data, own)
        # Gradients are divided by the number of microbatches.
        copied = flow.copied + self.costs.copy * own.parameter_bytes * self.slowdown
        blocked = [c for n in mine for c in self.blocked(n, count)] * count
        waits = sum(call.seconds for call in blocked)
        fixed = sum(self.profile.nodes[n].fixed for n in mine) * count + fixed_update
        fixed += self.costs.overheads.microbatch * count
        compute = schedule.busy[rank] - waits + update * self.slowdown
        return Parts(
            end=schedule.end + exposed + copied + update * self.slowdown,
            compute=compute,
            fixed=fixed,
            slowdown=max(1.0, compute / max(schedule.work[rank] + update, 1e-12)),
            copied=copied,
            blocked=blocked,
            beside=calls,
            exposed=exposed,
            idle=schedule.end - schedule.busy[rank],
        )

    def _stage_memory(
        self,
        data: Data,
        own: Profile,
        stages: Sequence[int],
        crossing: Sequence[float],
        order: Sequence[Action],
        count: int,
    ) -> Memory:
        """Of a rank: what it keeps of microbatches, and of what it receives and sends."""
        edges = [0.0, *crossing, 0.0]
        live = sent = 0.0
        for stage in {action.stage for action in order}:
            flight = _in_flight(order, stage)
            live += flight * (self._kept(stages, stage) + edges[stage]) / count
            # All that is sent, forward and back, stays until the end of the step.
            sent += edges[stage] + edges[stage + 1]
        # While a microbatch runs, more lives than what is kept of it.
        extra = max(0.0, self.profile.peak_bytes() - self.profile.saved_bytes())
        memory = self._memory(data, own, live + extra / count / (max(stages) + 1))
        # A gradient before it is added to the gradient of earlier microbatches.
        new = max((each.bytes for each in own.parameters), default=0) if count > 1 else 0
        return replace(memory, buffers=memory.buffers + sent + new)

    def _part(self, stages: Sequence[int], ranks: Sequence[int], rank: int) -> Profile:
        """The profile with the parameters of a rank of the pipeline."""
        own = [p for p in self.profile.parameters if ranks[stages[p.used]] == rank]
        return replace(self.profile, parameters=tuple(own))

    def _kept(self, stages: Sequence[int], stage: int) -> float:
        """Bytes that a stage keeps of all microbatches for its backward pass."""
        needed = {n for node in self.profile.nodes if node.phase == "backward" for n in node.reads}
        made = {
            name
            for node, each in zip(self.profile.nodes, stages, strict=True)
            if each == stage and node.phase == "forward"
            for name, _ in node.makes
        }
        sizes = self.profile.sizes
        return sum(sizes.get(name, 0) for name in made & needed)

    # What comes out

    def _memory(self, data: Data, own: Profile, activations: float) -> Memory:
        sharded = isinstance(data, FullySharded)
        part = 1 / self.mesh.data if sharded else 1.0
        whole = own.parameter_bytes
        state = own.optimizer_bytes * whole / max(self.profile.parameter_bytes, 1)
        buffers, gathered = own.buffer_bytes * 1.0, 0.0
        if isinstance(data, FullySharded) and own.parameters:
            units = self.units(data, own)
            sizes = [sum(parameter.bytes for parameter in unit) for unit in units]
            # One that is used and one that is gathered, and the gradient of one. In a pipeline
            # all stay gathered for the whole step.
            pairs = [a + b for a, b in zip(sizes, [*sizes[1:], 0], strict=True)]
            gathered = (max(pairs) if self.mesh.pipeline == 1 else whole) + max(sizes)
        elif data is not None:
            buffers += whole  # buckets
        # While the optimizer runs, all gradients exist, but no activations and no units.
        largest = max((each.bytes for each in self._updated(data, own)), default=0)
        meanwhile = self.costs.overheads.temporary * largest * part
        living = max(activations, meanwhile - gathered)
        return Memory(whole * part, whole * part, state * part, living, buffers + gathered)

    def _predicted(self, parts: Parts, memory: Memory) -> Prediction:
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
class Parts:
    """The parts of a step's seconds.

    Attributes:
        fixed: calling operators, before the slowdown.
        blocked: collectives without kernels beside them.
        beside: collectives beside kernels; `exposed` seconds of them are waited for.
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
            live += {"F": 1, "I": 0}.get(action.kind, -1)
            most = max(most, live)
    return most
