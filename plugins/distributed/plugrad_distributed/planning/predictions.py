"""Predictions: what a step takes on many ranks, what limits it, and tables of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Memory", "Prediction", "Table"]

# Smaller parts of a step are not listed as limits.
NOTED = 0.05


@dataclass(frozen=True)
class Memory:
    """Bytes on one rank, the one with most.

    Attributes:
        activations: the most that lives at a time of what is computed.
        buffers: inputs, the model's buffers, and what communication needs.

    >>> from plugrad.distributed.simulate import Memory
    >>> Memory(parameters=4e6, gradients=4e6, optimizer=8e6, activations=1e6, buffers=0.0).total
    17000000.0
    """

    parameters: float
    gradients: float
    optimizer: float
    activations: float
    buffers: float

    @property
    def total(self) -> float:
        return self.parameters + self.gradients + self.optimizer + self.activations + self.buffers


@dataclass(frozen=True)
class Prediction:
    """A step on some ranks.

    Attributes:
        strategy: in words.
        ranks: all of them.
        mesh: how many are data parallel, tensor parallel, and in a pipeline.
        step_time: seconds.
        compute: seconds in which a rank computes; of a pipeline, the rank that computes most.
        communication: seconds of its collectives, whether it waits for them or not.
        exposed: seconds in which it waits for them.
        idle: seconds in which it has no work from the pipeline.
        memory: bytes on one rank.
        batches: the number of batches of the profiled size in a step of all ranks.
        shares: the parts of the step's seconds, largest first.
        exceeds: whether it needs more memory than available.
        efficiency: batches per second and rank, relative to the profiled step.

    >>> from plugrad.distributed.simulate import Costs, DataParallel, simulate
    >>> from plugrad.distributed.simulate import NodeCost, ParameterCost, Profile
    >>> nodes = (NodeCost("linear", "forward", 1.0), NodeCost("backward", "backward", 2.0))
    >>> weight = ParameterCost("w", (500, 500), 1_000_000, 0, 1)
    >>> profile = Profile(nodes, (weight,), step_seconds=3)
    >>> print(simulate(profile, DataParallel(), 4, Costs.of(0.1, 1e6)))
    data parallel on 4 ranks (data 4, tensor 1, pipeline 1)
      step      4.9 s, efficiency 61%
      compute   3 s, idle 0 us
      messages  1.9 s, exposed 1.9 s
      memory    3 MB
                parameters 1, gradients 1, optimizer 0, activations 0, buffers 1
      limits    compute, all_reduce bandwidth, all_reduce latency
    """

    strategy: str
    ranks: int
    mesh: tuple[int, int, int]
    step_time: float
    compute: float
    communication: float
    exposed: float
    idle: float
    memory: Memory
    batches: int
    shares: tuple[tuple[str, float], ...]
    efficiency: float
    exceeds: bool = False

    @property
    def limits(self) -> tuple[str, ...]:
        """What keeps the step from being shorter, most first; "compute" is useful work.

        Parts below 5 % of the step are left out. "memory" is first if there is too little.

        >>> from plugrad.distributed.simulate import Costs, DataParallel, simulate
        >>> from plugrad.distributed.simulate import NodeCost, ParameterCost, Profile
        >>> nodes = (NodeCost("linear", "forward", 1.0), NodeCost("backward", "backward", 2.0))
        >>> weight = ParameterCost("w", (500, 500), 1_000_000, 0, 1)
        >>> profile = Profile(nodes, (weight,), step_seconds=3)
        >>> simulate(profile, DataParallel(), 4, Costs.of(0.1, 1e6), memory=1e6).limits
        ('memory', 'compute', 'all_reduce bandwidth', 'all_reduce latency')
        """
        noted = [name for name, seconds in self.shares if seconds >= NOTED * self.step_time]
        return ("memory", *noted) if self.exceeds else tuple(noted)

    @property
    def bottleneck(self) -> str:
        """The first of the limits that does no useful work.

        >>> from plugrad.distributed.simulate import Costs, DataParallel, simulate
        >>> from plugrad.distributed.simulate import NodeCost, ParameterCost, Profile
        >>> nodes = (NodeCost("linear", "forward", 1.0), NodeCost("backward", "backward", 2.0))
        >>> weight = ParameterCost("w", (500, 500), 1_000_000, 0, 1)
        >>> profile = Profile(nodes, (weight,), step_seconds=3)
        >>> simulate(profile, DataParallel(), 4, Costs.of(0.1, 1e6)).bottleneck
        'all_reduce bandwidth'
        """
        return next((name for name in self.limits if name != "compute"), "compute")

    def __str__(self) -> str:
        data, tensor, pipeline = self.mesh
        memory = self.memory
        parts = ", ".join(
            f"{name} {megabytes(getattr(memory, name))}"
            for name in ("parameters", "gradients", "optimizer", "activations", "buffers")
        )
        lines = [
            f"{self.strategy} on {self.ranks} ranks (data {data}, tensor {tensor}, pipeline "
            f"{pipeline})",
            f"  step      {duration(self.step_time)}, efficiency {self.efficiency:.0%}",
            f"  compute   {duration(self.compute)}, idle {duration(self.idle)}",
            f"  messages  {duration(self.communication)}, exposed {duration(self.exposed)}",
            f"  memory    {megabytes(memory.total)} MB",
            f"            {parts}",
            "  limits    " + ", ".join(self.limits),
        ]
        return "\n".join(_folded(lines))


def duration(seconds: float) -> str:
    """Seconds with three digits and a unit.

    >>> from plugrad_distributed.planning.predictions import duration
    >>> duration(0.01234)
    '12.3 ms'
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def megabytes(size: float) -> str:
    return f"{size / 1e6:.3g}" if size < 1e9 else f"{size / 1e6:.0f}"


def _short(strategy: str) -> str:
    """Several together in fewer letters."""
    if "+" not in strategy:
        return strategy
    for long, short in (
        ("data parallel", "data"),
        ("fully sharded", "sharded"),
        ("pipeline", "pipe"),
        (" +", ","),
    ):
        strategy = strategy.replace(long, short)
    return strategy


def _folded(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        while len(line) > 80:
            cut = line.rindex(" ", 0, 80)
            yield line[:cut]
            line = " " * 12 + line[cut + 1 :]
        yield line


@dataclass(frozen=True)
class Table:
    """Predictions, one a line when printed, in 80 columns.

    "waits" is the part of a step in which a rank waits for communication, "idle" for the pipeline,
    "eff." the efficiency.

    >>> from plugrad.distributed.simulate import Costs, DataParallel, sweep
    >>> from plugrad.distributed.simulate import NodeCost, ParameterCost, Profile
    >>> nodes = (NodeCost("linear", "forward", 1.0), NodeCost("backward", "backward", 2.0))
    >>> weight = ParameterCost("w", (500, 500), 1_000_000, 0, 1)
    >>> profile = Profile(nodes, (weight,), step_seconds=3)
    >>> table = sweep(profile, [DataParallel()], [1, 2, 4], Costs.of(0.1, 1e6))
    >>> [f"{row.ranks}: {row.step_time:.1f} s" for row in table]
    ['1: 3.0 s', '2: 4.1 s', '4: 4.9 s']
    """

    rows: tuple[Prediction, ...]

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        head = ("strategy", "ranks", "step", "waits", "idle", "eff.", "MB", "limited by")
        cells = [
            (
                _short(row.strategy), str(row.ranks), duration(row.step_time),
                f"{row.exposed / row.step_time:.0%}", f"{row.idle / row.step_time:.0%}",
                f"{row.efficiency:.0%}", megabytes(row.memory.total), row.bottleneck,
            )
            for row in self.rows
        ]  # fmt: skip
        widths = [max(len(line[n]) for line in (head, *cells)) for n in range(len(head))]
        lines = []
        for line in (head, *cells):
            parts = [
                cell.ljust(width) if n in (0, 7) else cell.rjust(width)
                for n, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            lines.append(" ".join(parts)[:80].rstrip())
        return "\n".join(lines)
