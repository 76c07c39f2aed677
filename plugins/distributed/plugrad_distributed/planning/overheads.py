"""Overheads: what the ways to spread a model take of Python's time."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

__all__ = ["NO_OVERHEADS", "Overheads", "middle"]


@dataclass(frozen=True)
class Overheads:
    """What a rank needs beside kernels and collectives; in seconds of a process that is alone,
    unless noted otherwise.

    Attributes:
        layer: a tensor parallel layer, forward and backward, beyond a plain one.
        unit: a unit of fully sharded parameters, forward and backward.
        gathered: each parameter of a unit.
        moved: each byte that is copied to memory that is made for it, as units do.
        beside: a collective that is started to run beside kernels, beyond one that is waited for.
        updated: an optimizer's update of a parameter that is a DTensor, beyond a plain one.
        updated_byte: of each byte of such a parameter: what runs as several operators.
        temporary: memory that such an update needs meanwhile, as a multiple of the parameter's.
        microbatch: a microbatch through a stage of a pipeline, forward and backward.
        split: what it adds if backward comes in two parts.
        sent, received: a message to the next stage or back, with its shapes, on either side.

    >>> from dataclasses import replace
    >>> from plugrad.distributed.simulate import Costs, FullySharded, Overheads, simulate
    >>> from plugrad.distributed.simulate import NodeCost, ParameterCost, Profile
    >>> nodes = (NodeCost("linear", "forward", 1.0), NodeCost("backward", "backward", 2.0))
    >>> weight = ParameterCost("w", (500, 500), 1_000_000, 0, 1)
    >>> profile = Profile(nodes, (weight,), step_seconds=3)
    >>> costs = replace(Costs.of(0.1, 1e6), overheads=Overheads(unit=0.5))
    >>> simulate(profile, FullySharded(), 2, costs).compute
    3.5
    """

    layer: float = 0.0
    unit: float = 0.0
    gathered: float = 0.0
    moved: float = 0.0
    beside: float = 0.0
    updated: float = 0.0
    updated_byte: float = 0.0
    temporary: float = 0.0
    microbatch: float = 0.0
    split: float = 0.0
    sent: float = 0.0
    received: float = 0.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value >= 0:
                raise ValueError(f"Overheads(): {name} must not be below 0, got {value!r}")


NO_OVERHEADS = Overheads()


def middle(found: Sequence[Overheads]) -> Overheads:
    """The median of each, of several measurements. They are differences of times, so one that is
    too small is as likely as one that is too large, and often comes with another that is too large.

    >>> from plugrad_distributed.planning.overheads import Overheads, middle
    >>> middle([Overheads(unit=unit) for unit in (3.0, 1.0, 2.0)]).unit
    2.0
    """
    every = [asdict(each) for each in found]
    return Overheads(**{name: statistics.median(each[name] for each in every) for name in every[0]})
