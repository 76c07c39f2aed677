"""simulate and sweep: predictions from a profile, strategies and costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from plugrad_distributed.planning.costs import Costs
from plugrad_distributed.planning.predictions import Prediction, Table
from plugrad_distributed.planning.profiles import Profile
from plugrad_distributed.planning.running import Mesh, Run
from plugrad_distributed.planning.strategies import (
    DataParallel,
    FullySharded,
    Pipeline,
    Strategy,
    TensorParallel,
)

__all__ = ["simulate", "sweep"]


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
    Tensor parallel ranks are adjacent, pipeline ranks are further apart, data parallel ranks
    furthest. A group with ranks on several machines has the costs between machines for all its
    messages, and shares a machine's network with the other groups there.

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
    data = next((each for each in parts if isinstance(each, DataParallel | FullySharded)), None)
    pipeline = next((each for each in parts if isinstance(each, Pipeline)), None)
    if mesh.data == 1 and isinstance(data, DataParallel):
        data = None  # it only calls the model
    run = Run(
        profile,
        mesh,
        costs,
        min(ranks, per_machine),
        ranks > per_machine,
        often=pipeline is None and (mesh.splits or isinstance(data, FullySharded)),
    )
    found = run.whole(data) if pipeline is None else run.staged(data, pipeline)
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
    into is left out.

    >>> from plugrad.distributed.simulate import Costs, DataParallel, FullySharded, sweep
    >>> from plugrad.distributed.simulate import NodeCost, ParameterCost, Profile
    >>> nodes = (NodeCost("linear", "forward", 1.0), NodeCost("backward", "backward", 2.0))
    >>> weight = ParameterCost("w", (500, 500), 1_000_000, 0, 1)
    >>> profile = Profile(nodes, (weight,), step_seconds=3)
    >>> print(sweep(profile, [DataParallel(), FullySharded()], [1, 4], Costs.of(0.1, 1e6)))
    strategy      ranks   step waits idle eff.  MB limited by
    data parallel     1    3 s    0%   0% 100%   2 compute
    data parallel     4  4.9 s   39%   0%  61%   3 all_reduce bandwidth
    fully sharded     1    3 s    0%   0% 100%   4 compute
    fully sharded     4 5.85 s   49%   0%  51% 2.5 all_gather bandwidth
    """
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


def _mesh(parts: Sequence[Strategy], ranks: int) -> Mesh:
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
    return Mesh(data, width, depth, tensor is not None)
