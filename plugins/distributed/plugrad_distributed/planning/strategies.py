"""How a step is spread over ranks: classes to be given to `simulate`, alone or several together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

__all__ = ["DataParallel", "FullySharded", "Pipeline", "Strategy", "TensorParallel"]

ScheduleName = Literal[
    "gpipe", "1f1b", "looped_bfs", "interleaved_1f1b", "interleaved_zero_bubble", "zbv_zero_bubble"
]
SCHEDULES: tuple[str, ...] = get_args(ScheduleName)


def _check_cuts(owner: str, cuts: tuple[int, ...] | None) -> None:
    """They must be above 0 and increase."""
    edges = (0, *(cuts or ()))
    if any(before >= after for before, after in pairwise(edges)):
        raise ValueError(f"{owner}(): cuts must be above 0 and increase, got {cuts!r}")


@dataclass(frozen=True)
class DataParallel:
    """DistributedDataParallel: each rank has the model and a batch of the profiled size. Buckets
    of gradients are reduced while backward runs; the first one has 1 MiB.

    >>> from plugrad.distributed.simulate import Costs, DataParallel, simulate
    >>> from plugrad.distributed.simulate import NodeCost, ParameterCost, Profile
    >>> nodes = (NodeCost("linear", "forward", 1.0), NodeCost("backward", "backward", 2.0))
    >>> weight = ParameterCost("w", (500, 500), 1_000_000, 0, 1)
    >>> profile = Profile(nodes, (weight,), step_seconds=3)
    >>> found = simulate(profile, DataParallel(bucket_cap_mb=1.0), 2, Costs.of(0.1, 1e6))
    >>> found.batches, found.bottleneck
    (2, 'all_reduce bandwidth')
    """

    bucket_cap_mb: float = 25.0

    def __post_init__(self) -> None:
        if not self.bucket_cap_mb > 0:
            raise ValueError(
                f"DataParallel(): bucket_cap_mb must be above 0, got {self.bucket_cap_mb!r}"
            )

    def __str__(self) -> str:
        return "data parallel"


@dataclass(frozen=True)
class FullySharded:
    """As data parallel, with parameters, gradients and the optimizer's state split over the ranks.
    Layers are gathered in units, one unit ahead.

    Args:
        unit_mb: units have so many MiB or more.
        cuts: in place of that, the layers with which units after the first begin. Layers are
            operators that use parameters, counted from 0 in the order of the forward pass.

    >>> from plugrad.distributed.simulate import Costs, FullySharded, simulate
    >>> from plugrad.distributed.simulate import NodeCost, ParameterCost, Profile
    >>> nodes = (NodeCost("linear", "forward", 1.0), NodeCost("backward", "backward", 2.0))
    >>> weight = ParameterCost("w", (500, 500), 1_000_000, 0, 1)
    >>> profile = Profile(nodes, (weight,), step_seconds=3)
    >>> simulate(profile, FullySharded(), 4, Costs.of(0.1, 1e6)).memory.parameters
    250000.0
    """

    unit_mb: float = 1.0
    cuts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not self.unit_mb >= 0:
            raise ValueError(f"FullySharded(): unit_mb must not be below 0, got {self.unit_mb!r}")
        _check_cuts("FullySharded", self.cuts)

    def __str__(self) -> str:
        return "fully sharded"


@dataclass(frozen=True)
class TensorParallel:
    """Layers split over ranks that have the same batch: by columns and by rows in turns.

    Args:
        ranks: how many; None for all that are left.

    >>> from plugrad.distributed.simulate import DataParallel, TensorParallel
    >>> print(TensorParallel(4))
    tensor x4
    >>> TensorParallel(0)
    Traceback (most recent call last):
        ...
    ValueError: TensorParallel(): ranks must be positive, got 0
    """

    ranks: int | None = None

    def __post_init__(self) -> None:
        if self.ranks is not None and self.ranks < 1:
            raise ValueError(f"TensorParallel(): ranks must be positive, got {self.ranks!r}")

    def __str__(self) -> str:
        return "tensor" if self.ranks is None else f"tensor x{self.ranks}"


@dataclass(frozen=True)
class Pipeline:
    """The model in stages, the profiled batch in microbatches that follow one another.

    Args:
        stages: ranks one behind the other; None for all that are left.
        stages_per_rank: 1 for "gpipe" and "1f1b", 2 for "zbv_zero_bubble".
        cuts: the layers with which stages after the first begin, as for `FullySharded`. By default
            the forward pass is cut in parts that take about as long.

    >>> from plugrad.distributed.simulate import Pipeline
    >>> print(Pipeline(stages=4, microbatches=16, schedule="zbv_zero_bubble", stages_per_rank=2))
    pipeline x4
    >>> Pipeline(stages=4, schedule="zbv_zero_bubble")
    Traceback (most recent call last):
        ...
    ValueError: Pipeline(): 'zbv_zero_bubble' has two stages on each rank, got stages_per_rank=1
    """

    stages: int | None = None
    microbatches: int = 8
    schedule: ScheduleName = "1f1b"
    stages_per_rank: int = 1
    cuts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("microbatches", "stages_per_rank"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"Pipeline(): {name} must be positive, got {getattr(self, name)!r}"
                )
        if self.stages is not None and self.stages < 1:
            raise ValueError(f"Pipeline(): stages must be positive, got {self.stages!r}")
        if self.schedule not in SCHEDULES:
            raise ValueError(
                f"Pipeline(): schedule must be one of {', '.join(SCHEDULES)}, got {self.schedule!r}"
            )
        if self.stages_per_rank > 1 and self.schedule in ("gpipe", "1f1b"):
            raise ValueError(
                f"Pipeline(): {self.schedule!r} has one stage on each rank, got "
                f"stages_per_rank={self.stages_per_rank}"
            )
        if self.schedule == "zbv_zero_bubble" and self.stages_per_rank != 2:
            raise ValueError(
                f"Pipeline(): 'zbv_zero_bubble' has two stages on each rank, got "
                f"stages_per_rank={self.stages_per_rank}"
            )
        _check_cuts("Pipeline", self.cuts)

    def __str__(self) -> str:
        return "pipeline" if self.stages is None else f"pipeline x{self.stages}"


Strategy = DataParallel | FullySharded | TensorParallel | Pipeline
