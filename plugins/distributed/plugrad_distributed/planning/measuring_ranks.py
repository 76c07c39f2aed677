"""What ranks of one machine take from each other and from memory: copies, collectives beside
kernels, waiting, messages."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import plugrad
from plugrad import Tensor
from plugrad_distributed.distributed.collectives import all_reduce, barrier, broadcast
from plugrad_distributed.distributed.objects import all_gather_object
from plugrad_distributed.distributed.points import irecv, isend, recv, send
from plugrad_distributed.distributed.queries import get_rank, get_world_size

__all__ = [
    "COMPUTED",
    "Beside",
    "InMemory",
    "Messages",
    "measure_beside",
    "measure_late",
    "measure_memory",
    "measure_messages",
    "measure_waiting",
    "per_call",
    "work_of_steps",
]

# So long is computed to find out what others that compute at the same time cost.
COMPUTED = 0.2
# Pairs of 4 MB: more than caches hold.
TURNS = 12
# Messages that are timed, and how long the receiver lets them arrive.
MESSAGES = 20
# All_reduces beside kernels: so often, and the number of floats of those that have no bytes to
# speak of.
TRIES = 3
TINY = 100
ARRIVAL = 0.003


def work_of_steps() -> Callable[[], Tensor]:
    """Kernels that compute, and one that reads and writes memory, as steps have both."""
    x, large = plugrad.ones(256, 256), plugrad.ones(1_000_000)

    def work() -> Tensor:
        plugrad.mm(x, x)
        return plugrad.relu(large)

    return work


def per_call(action: Callable[[], Any], seconds: float) -> float:
    """Seconds of the fastest call: others that use the machine only add to it."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


class InMemory(NamedTuple):
    """Seconds per byte of memory that no cache holds: copied, added to others, and copied to memory
    that is made for it."""

    copy: float
    add: float
    moved: float


def measure_memory() -> InMemory:
    """Of the calling rank; pairs of tensors take turns."""
    size = 1_000_000
    pairs = [(plugrad.zeros(size), plugrad.ones(size)) for _ in range(TURNS)]

    def copy() -> None:
        for x, y in pairs:
            y.copy_(x)

    def add() -> None:
        for x, y in pairs:
            y.add_(x)

    made: list[Tensor | None] = [None] * TURNS

    def move() -> None:
        for number, (x, _) in enumerate(pairs):
            made[number] = plugrad.empty(size).copy_(x)

    size_of_all = 4 * size * TURNS
    return InMemory(*(per_call(each, COMPUTED) / size_of_all for each in (copy, add, move)))


class Beside(NamedTuple):
    """The cost of an all_reduce beside kernels: the part that does not stop them, and the seconds
    by which a tiny one exceeds one that is waited for."""

    overlap: float
    seconds: float


def measure_beside(size: int, group: Any) -> Beside:
    """Of all ranks of a group, for all_reduces of so many floats, and of a few."""
    tiny, _ = _saved(TINY, group)
    saved, least = _saved(size, group)
    return Beside(min(1.0, saved / least), max(0.0, -tiny))


def _saved(size: int, group: Any) -> tuple[float, float]:
    """Seconds that an all_reduce beside kernels saves, and those that it could save."""
    x, work = plugrad.zeros(size), work_of_steps()
    calls = 0

    def computed() -> None:
        for _ in range(calls):
            work()

    def both() -> None:
        waiting = all_reduce(x, group=group, async_op=True)
        computed()
        assert waiting is not None
        waiting.wait()

    def spent(action: Callable[[], Any]) -> float:
        barrier(group=group)
        start = time.perf_counter()
        action()
        return time.perf_counter() - start

    reduced = min(spent(lambda: all_reduce(x, group=group)) for _ in range(TRIES))
    calls = max(1, round(reduced / per_call(work, COMPUTED / 4)))
    shared = plugrad.tensor([calls])
    broadcast(shared, group=group, group_src=0)
    (calls,) = shared.tolist()
    alone, together = [], []
    for _ in range(TRIES):
        alone.append(spent(computed))
        together.append(spent(both))
    return min(alone) + reduced - min(together), min(reduced, *alone)


def measure_waiting(cores: int) -> float:
    """The part of a core that a waiting rank takes from ranks that compute, if there are more ranks
    than cores: how much less they compute while it waits than while it sleeps. Every rank calls
    this; the first one gets the result."""
    others = get_world_size() - cores
    if others < 1:
        return 0.0
    work, found = work_of_steps(), []
    for _ in range(TRIES):
        asleep, waiting = (_rate(work, cores, pause) for pause in (1.5 * COMPUTED, 0.0))
        found.append((asleep / waiting - 1) * cores / others)
    return min(1.0, max(0.0, statistics.median(found)))


def _rate(work: Callable[[], Any], cores: int, pause: float) -> float:
    """Calls per second of the first ranks together, while the others sleep so long, then wait."""
    note = plugrad.zeros(1)
    barrier()
    rank, calls = get_rank(), 0
    begun = time.perf_counter()
    if rank < cores:
        while time.perf_counter() < begun + COMPUTED:
            work()
            calls += 1
    else:
        time.sleep(pause)
        recv(note, 0)
    rate = calls / (time.perf_counter() - begun)
    if rank == 0:
        for other in range(cores, get_world_size()):
            send(note, other)
    rates: list[Any] = [None] * get_world_size()
    all_gather_object(rates, rate)
    return math.fsum(rates[:cores])


def measure_late(cores: int) -> float:
    """Seconds until a rank that waits sees a message, where ranks are more than cores and others
    compute. Every rank calls it; the one after those that compute gets it."""
    if get_world_size() <= cores:
        return 0.0
    rank, work = get_rank(), work_of_steps()
    took: list[float] = []
    barrier()
    if rank < cores:
        for _ in range(MESSAGES):
            begun = time.perf_counter()
            while time.perf_counter() < begun + ARRIVAL:
                work()
            if rank == 0:
                # Clocks of processes of one machine are the same.
                send(plugrad.tensor([time.perf_counter()], dtype=plugrad.float64), cores)
    elif rank == cores:
        sent = plugrad.zeros(1, dtype=plugrad.float64)
        for _ in range(MESSAGES):
            recv(sent, 0)
            took.append(time.perf_counter() - float(sent))
    barrier()
    return statistics.median(took) if took else 0.0


class Messages(NamedTuple):
    """Seconds of Python's time of a message between stages, with the note that comes before it, on
    the rank that sends and on the one that receives."""

    sent: float
    received: float


def measure_messages() -> Messages:
    """The first rank sends, the second one receives what has arrived already; every rank calls
    it. It uses the thread's clock, so waiting is not included."""
    times: list[float] = []
    rank = get_rank()
    x, note = plugrad.zeros(100), plugrad.zeros(1, dtype=plugrad.int64)
    for _ in range(MESSAGES):
        barrier()
        if rank == 0:
            begun = time.thread_time()
            works = [isend(note, 1), isend(x, 1)]
            times.append(time.thread_time() - begun)
            for work in works:
                assert work is not None
                work.wait()
        elif rank == 1:
            time.sleep(ARRIVAL)
            begun = time.thread_time()
            for each in (plugrad.zeros(1, dtype=plugrad.int64), plugrad.empty(100)):
                work = irecv(each, 0)
                assert work is not None
                work.wait()
            times.append(time.thread_time() - begun)
    barrier()
    spent = statistics.median(times) if times else 0.0
    return Messages(spent if rank == 0 else 0.0, spent if rank == 1 else 0.0)
