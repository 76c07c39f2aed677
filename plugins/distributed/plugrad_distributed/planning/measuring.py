"""measure_collectives: what communication costs between the processes of a program."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.distributed.collectives import (
    all_gather_into_tensor,
    all_reduce,
    barrier,
    broadcast,
    reduce_scatter_tensor,
)
from plugrad_distributed.distributed.objects import all_gather_object, broadcast_object_list
from plugrad_distributed.distributed.points import recv, send
from plugrad_distributed.distributed.starting import get_rank, get_world_size, new_group
from plugrad_distributed.planning.costs import Costs, Point
from plugrad_distributed.planning.measuring_overheads import measure_overheads
from plugrad_distributed.planning.overheads import Overheads

__all__ = ["measure_collectives", "measure_contention"]

# Numbers of floats.
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
# So long is computed to find out what others that compute at the same time cost.
COMPUTED = 0.2
# Pairs of 4 MB: more than caches hold.
TURNS = 12


def measure_collectives(
    sizes: Sequence[int] = SIZES,
    *,
    rounds: int = 10,
    seconds: float = 1.0,
    optimizer: Callable[[Any], Any] | None = None,
) -> Costs:
    """What collectives cost on groups of 2 and more processes, up to all. Every rank of a program
    calls it, on one machine, and every rank gets the same.

        mpiexec -n 4 python -c "
        import plugrad.distributed as dist
        from plugrad.distributed.simulate import measure_collectives
        dist.init_process_group()
        costs = measure_collectives()
        if dist.get_rank() == 0:
            costs.save('costs.json')"

    A round takes as long as its slowest rank; the median of rounds counts.
    `Costs.fitted` says how lines are fitted to them.

    Args:
        sizes: numbers of floats.
        rounds: of each collective and size, at most.
        seconds: the longest time for the rounds of one collective and size.
        optimizer: makes the one whose updates of DTensors are measured; SGD with momentum by
            default.

    Raises:
        ValueError: there is only one process.
    """
    world = get_world_size()
    if world < 2:
        raise ValueError("measure_collectives(): needs 2 processes or more, there is 1")
    cores = _cores()
    measured: dict[str, list[Point]] = {name: [] for name in _MEASURED}
    for ranks in range(2, world + 1):
        group = new_group(list(range(ranks)))
        if get_rank() < ranks:
            for name, make in _MEASURED.items():
                for size in sizes:
                    bytes_, action = make(size - size % ranks or ranks, ranks, group)
                    median = _median(action, group, rounds, seconds)
                    measured[name].append(Point(ranks, bytes_, median))
        barrier()
    contention = 1.0
    busy = new_group(list(range(min(world, cores))))
    if get_rank() < min(world, cores):
        contention = measure_contention(group=busy)
    barrier()
    overheads = Overheads()
    single = new_group([0])
    if get_rank() == 0:
        overheads = measure_overheads(single, optimizer)
    barrier()
    found: list[Any] = [None] * world
    copy, add = _in_memory()
    all_gather_object(found, (measured, contention, overheads, copy, add, _overlap(max(sizes))))
    measured, contention, overheads, copy, add, overlap = found[0]
    return Costs.fitted(
        measured,
        cores=cores,
        contention=contention,
        copy=copy,
        overlap=overlap,
        about=f"measured with {world} processes on {cores} cores",
        add=add,
        overheads=overheads,
    )


def _cores() -> int:
    """Those that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


Made = tuple[int, Callable[[], Any]]


def _all_reduce(size: int, ranks: int, group: Any) -> Made:
    x = plugrad.zeros(size)
    return 4 * size, lambda: all_reduce(x, group=group)


def _all_gather(size: int, ranks: int, group: Any) -> Made:
    whole, part = plugrad.zeros(size), plugrad.zeros(size // ranks)
    return 4 * size, lambda: all_gather_into_tensor(whole, part, group=group)


def _reduce_scatter(size: int, ranks: int, group: Any) -> Made:
    whole, part = plugrad.zeros(size), plugrad.zeros(size // ranks)
    return 4 * size, lambda: reduce_scatter_tensor(part, whole, group=group)


def _broadcast(size: int, ranks: int, group: Any) -> Made:
    x = plugrad.zeros(size)
    return 4 * size, lambda: broadcast(x, src=0, group=group)


def _send(size: int, ranks: int, group: Any) -> Made:
    """From the first rank to the last one; others do nothing."""
    x = plugrad.zeros(size)

    def action() -> None:
        if get_rank() == 0:
            send(x, ranks - 1, group=group)
        elif get_rank() == ranks - 1:
            recv(x, 0, group=group)

    return 4 * size, action


_MEASURED: dict[str, Callable[[int, int, Any], Made]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "broadcast": _broadcast,
    "send": _send,
}


def _median(action: Callable[[], Any], group: Any, rounds: int, seconds: float) -> float:
    """Seconds of a round, each as long as on its slowest rank."""
    own: list[float] = []
    action()
    begun = time.perf_counter()
    for _ in range(rounds):
        barrier(group=group)
        start = time.perf_counter()
        action()
        own.append(time.perf_counter() - start)
        # All go on, or none.
        over = plugrad.tensor([time.perf_counter() - begun])
        all_reduce(over, group=group)
        if over.item() > seconds * group.size():
            break
    times: list[Any] = [None] * group.size()
    all_gather_object(times, own, group=group)
    return float(statistics.median(max(each) for each in zip(*times, strict=True)))


def _work() -> Callable[[], Tensor]:
    """Kernels that compute, and one that reads and writes memory, as steps have both."""
    x, large = plugrad.ones(256, 256), plugrad.ones(1_000_000)

    def work() -> Tensor:
        plugrad.mm(x, x)
        return plugrad.relu(large)

    return work


def _per_call(action: Callable[[], Any], seconds: float) -> float:
    """Seconds of the fastest call: others that use the machine only add to it."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def measure_contention(fn: Callable[[], Any] | None = None, group: Any = None) -> float:
    """How much slower a function is while all ranks of a group call it at the same time than on
    the first rank alone; at least 1. Caches and memory are shared.

    It is what `Costs.contention` holds, of a group that has a core for each rank. Steps differ in
    it: `dataclasses.replace(costs, contention=measure_contention(step))`.

    Args:
        fn: a step without communication; some kernels by default. The fastest of its calls counts.
        group: all ranks by default; each of them calls this.
    """
    first, work = get_rank(group) == 0, fn or _work()
    work()
    barrier(group=group)
    # Others sleep meanwhile: waiting in MPI would keep a core busy.
    alone = 0.0
    if first:
        alone = _per_call(work, COMPUTED)
    else:
        time.sleep(1.5 * COMPUTED)
    barrier(group=group)
    together = _per_call(work, 2 * COMPUTED)
    found = [max(1.0, together / alone) if first else 1.0]
    broadcast_object_list(found, group=group, group_src=0)
    return found[0]


def _in_memory() -> tuple[float, float]:
    """Seconds per byte that is copied, and that is added to others, of memory that no cache holds:
    pairs of tensors take turns."""
    size = 1_000_000
    pairs = [(plugrad.zeros(size), plugrad.ones(size)) for _ in range(TURNS)]

    def copy() -> None:
        for x, y in pairs:
            y.copy_(x)

    def add() -> None:
        for x, y in pairs:
            y.add_(x)

    size *= 4 * TURNS
    return _per_call(copy, COMPUTED) / size, _per_call(add, COMPUTED) / size


def _overlap(size: int) -> float:
    """Which part of an all_reduce of all ranks runs beside kernels."""
    x, work = plugrad.zeros(size), _work()
    calls = 0

    def computed() -> None:
        for _ in range(calls):
            work()

    def both() -> None:
        waiting = all_reduce(x, async_op=True)
        computed()
        assert waiting is not None
        waiting.wait()

    def spent(action: Callable[[], Any]) -> float:
        barrier()
        start = time.perf_counter()
        action()
        return time.perf_counter() - start

    reduced = min(spent(lambda: all_reduce(x)) for _ in range(3))
    calls = max(1, round(reduced / _per_call(work, COMPUTED / 4)))
    shared = plugrad.tensor([calls])
    broadcast(shared, src=0)
    (calls,) = shared.tolist()
    alone, together = [], []
    for _ in range(3):
        alone.append(spent(computed))
        together.append(spent(both))
    saved = min(alone) + reduced - min(together)
    return min(1.0, max(0.0, saved / min(reduced, min(alone))))
