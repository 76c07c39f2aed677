"""measure_collectives: what communication costs between the processes of a program."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import plugrad
from plugrad_distributed.distributed.collectives import (
    all_gather_into_tensor,
    all_reduce,
    barrier,
    broadcast,
    reduce_scatter_tensor,
)
from plugrad_distributed.distributed.objects import all_gather_object, broadcast_object_list
from plugrad_distributed.distributed.points import recv, send
from plugrad_distributed.distributed.queries import get_rank, get_world_size
from plugrad_distributed.distributed.starting import new_group
from plugrad_distributed.planning.costs import Costs, Point
from plugrad_distributed.planning.measuring_overheads import (
    Layers,
    measure_layers,
    measure_overheads,
)
from plugrad_distributed.planning.measuring_ranks import (
    COMPUTED,
    Beside,
    InMemory,
    measure_beside,
    measure_late,
    measure_memory,
    measure_messages,
    measure_waiting,
    per_call,
    work_of_steps,
)
from plugrad_distributed.planning.overheads import Overheads

__all__ = ["measure_collectives", "measure_contention"]

# Numbers of floats.
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)


def measure_collectives(
    sizes: Sequence[int] = SIZES,
    *,
    rounds: int = 10,
    seconds: float = 1.0,
    optimizer: Callable[[Any], Any] | None = None,
) -> Costs:
    """Measure the costs of collectives on groups of 2 and more processes, up to all. Every rank of
    a program calls it, on one machine, and every rank gets the same.

        mpiexec -n 4 python -c "
        import plugrad.distributed as dist
        from plugrad.distributed.simulate import measure_collectives
        dist.init_process_group()
        costs = measure_collectives()
        if dist.get_rank() == 0:
            costs.save('costs.json')"

    A round takes as long as its slowest rank; the median of rounds is used. `Costs.fitted`
    describes how lines are fitted to them.

    Args:
        sizes: numbers of floats.
        rounds: of each collective and size, at most.
        seconds: the longest time for the rounds of one collective and size.
        optimizer: makes the one whose updates of DTensors are measured; SGD with momentum by
            default.

    Raises:
        ValueError: there is only one process.

    >>> import plugrad.distributed as dist
    >>> from plugrad.distributed.simulate import measure_collectives
    >>> dist.init_process_group("alone")
    >>> measure_collectives()
    Traceback (most recent call last):
        ...
    ValueError: measure_collectives(): needs 2 processes or more, there is 1
    >>> dist.destroy_process_group()
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
    contention, beside, memory = 1.0, Beside(1.0, 0.0), InMemory(0.0, 0.0, 0.0)
    busy = new_group(list(range(min(world, cores))))
    if get_rank() < min(world, cores):
        contention = measure_contention(group=busy)
        memory = measure_memory()
        beside = measure_beside(max(sizes), busy)
    barrier()
    waiting, late = measure_waiting(cores), measure_late(cores)
    messages = measure_messages()
    overheads, layers = Overheads(), Layers(0.0, 0.0, 0.0)
    pair = new_group([0, 1])
    if get_rank() < 2:
        layers = measure_layers(pair)
    barrier()
    single = new_group([0])
    if get_rank() == 0:
        overheads = measure_overheads(single, optimizer)
    barrier()
    overheads = replace(
        overheads, **layers._asdict(), moved=memory.moved, beside=beside.seconds, sent=messages.sent
    )
    found: list[Any] = [None] * world
    all_gather_object(
        found, (measured, contention, overheads, memory, beside, waiting, messages, late)
    )
    measured, contention, overheads, memory, beside, waiting, *_ = found[0]
    overheads = replace(overheads, received=found[1][-2].received)
    return Costs.fitted(
        measured,
        cores=cores,
        contention=contention,
        copy=memory.copy,
        overlap=beside.overlap,
        about=f"measured with {world} processes on {cores} cores",
        add=memory.add,
        overheads=overheads,
        waiting=waiting,
        late=max(each[-1] for each in found),
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


def measure_contention(fn: Callable[[], Any] | None = None, group: Any = None) -> float:
    """How much slower a function is while all ranks of a group call it at the same time than on
    the first rank alone; at least 1. Caches and memory are shared.

    It is what `Costs.contention` holds, of a group that has a core for each rank. Steps differ in
    it: `dataclasses.replace(costs, contention=measure_contention(step))`.

    Args:
        fn: a step without communication; some kernels by default. The fastest of its calls counts.
        group: all ranks by default; each of them calls this.

    >>> import plugrad.distributed as dist
    >>> from plugrad.distributed.simulate import measure_contention
    >>> min(dist.run_ranks(measure_contention, 2)) >= 1.0
    True
    """
    first, work = get_rank(group) == 0, fn or work_of_steps()
    work()
    barrier(group=group)
    # Others sleep meanwhile: waiting in MPI would keep a core busy.
    alone = 0.0
    if first:
        alone = per_call(work, COMPUTED)
    else:
        time.sleep(1.5 * COMPUTED)
    barrier(group=group)
    together = per_call(work, 2 * COMPUTED)
    found = [max(1.0, together / alone) if first else 1.0]
    broadcast_object_list(found, group=group, group_src=0)
    return found[0]
