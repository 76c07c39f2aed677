"""A chain of many nodes: time and memory per node must not depend on its length.

Memory is measured as the growth of the resident set, in a separate process for each library; the
result of an operation counts as part of its node. The collector runs as in any program, but does
not look at what the imports of both libraries left, 200,000 objects: a program imports one of them.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
import tracemalloc
from typing import Any, NamedTuple

import numpy as np

from benchmarks.libraries import Library, libraries
from benchmarks.measure import PLUGRAD, TORCH, Budget, Effort, Row, Sample, power

LENGTHS = (10**3, 10**4, 10**5, 10**6)
SMOKE_LENGTHS = (10**2, 10**3)
# Shorter chains would measure the system's page granularity.
MEMORY_LENGTHS = (10**5, 10**6)
SMOKE_MEMORY_LENGTHS = (10**4,)
FAN, SMOKE_FAN = 10**5, 10**2
SHORTEST = "the shortest chain"


class Phases(NamedTuple):
    """Microseconds per node."""

    build: float
    backward: float
    free: float


def build(library: Library, length: int) -> tuple[Any, Any]:
    """The leaf and the end of a chain of `y = y * b`."""
    x = library.leaf(np.ones((4, 4), dtype=np.float32))
    b = library.constant(np.full((4, 4), 0.999, dtype=np.float32))
    y = x
    for _ in range(length):
        y = y * b
    return x, y


def timings(library: Library, length: int) -> Phases:
    seed = library.constant(np.ones((4, 4), dtype=np.float32))
    gc.collect()
    start = time.perf_counter()
    ends = build(library, length)
    built = time.perf_counter()
    ends[1].backward(seed)
    ran = time.perf_counter()
    del ends
    freed = time.perf_counter()
    return Phases(*(1e6 * took / length for took in (built - start, ran - built, freed - ran)))


def fan(library: Library, branches: int) -> float:
    """Microseconds per branch: many products of one tensor, and one backward from all of them."""
    x = library.leaf(np.ones((4, 4), dtype=np.float32))
    b = library.constant(np.full((4, 4), 0.999, dtype=np.float32))
    seed = library.constant(np.ones((4, 4), dtype=np.float32))
    gc.collect()
    start = time.perf_counter()
    ends = [x * b for _ in range(branches)]
    library.module.autograd.backward(ends, [seed] * branches)
    return 1e6 * (time.perf_counter() - start) / branches


def fan_row(contestants: list[Library], effort: Effort) -> Row:
    branches = SMOKE_FAN if effort.smoke else FAN
    found: dict[str, list[float]] = {library.name: [] for library in contestants}
    for _ in range(2 if effort.smoke else 7):
        for library in contestants:
            found[library.name].append(fan(library, branches))
    samples = {name: Sample.of(measured) for name, measured in found.items()}
    case = f"build and backward, a fan of {power(branches)} branches"
    return Row("deep_graph", case, "us per branch", samples, Budget(0.8, TORCH))


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def allocated_bytes() -> int:
    return tracemalloc.get_traced_memory()[0]


def memory_child(name: str, length: int, traced: bool) -> None:
    """Print the bytes per node of a chain; runs in a separate process."""
    library = next(found for found in libraries() if found.name == name)
    _, end = build(library, 100)
    end.backward(library.constant(np.ones((4, 4), dtype=np.float32)))
    del end
    gc.collect()
    if traced:
        tracemalloc.start()
    measure = allocated_bytes if traced else resident_bytes
    before = measure()
    ends = build(library, length)
    print((measure() - before) / length)
    del ends


def bytes_per_node(name: str, length: int, *, traced: bool) -> Sample:
    arguments = f"{name!r}, {length}, {traced}"
    code = f"from benchmarks.deep_graph import memory_child; memory_child({arguments})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    size = float(done.stdout)
    return Sample(size, size)


def time_rows(contestants: list[Library], lengths: tuple[int, ...], effort: Effort) -> list[Row]:
    """Every phase of every length, compared with the same phase of the shortest chain."""
    rows: dict[tuple[str, int], Row] = {}
    for length in lengths:
        rounds = 2 if effort.smoke else max(3, min(25, 10**6 // length))
        found: dict[str, list[Phases]] = {library.name: [] for library in contestants}
        for library in contestants:
            timings(library, min(length, 1000))
        for _ in range(rounds):
            for library in contestants:
                found[library.name].append(timings(library, length))
        for index, phase in enumerate(Phases._fields):
            samples = {
                name: Sample.of([phases[index] for phases in measured])
                for name, measured in found.items()
            }
            row = Row("deep_graph", f"{phase}, {power(length)} nodes", "us per node", samples)
            row.compare(SHORTEST, rows.get((phase, lengths[0]), row).samples[PLUGRAD])
            rows[phase, length] = row
    rows["backward", lengths[-1]].budget = Budget(1.3, SHORTEST)
    return [rows[phase, length] for phase in Phases._fields for length in lengths]


def run(effort: Effort) -> list[Row]:
    contestants = libraries()
    lengths = SMOKE_LENGTHS if effort.smoke else LENGTHS
    gc.collect()
    gc.freeze()
    report = [*time_rows(contestants, lengths, effort), fan_row(contestants, effort)]
    gc.unfreeze()
    memory_lengths = SMOKE_MEMORY_LENGTHS if effort.smoke else MEMORY_LENGTHS
    for length in memory_lengths:
        samples = {
            library.name: bytes_per_node(library.name, length, traced=False)
            for library in contestants
        }
        case = f"resident memory, {power(length)} nodes"
        report.append(Row("deep_graph", case, "bytes per node", samples, Budget(1.0, TORCH)))
    # Python's allocations only: tracemalloc does not see PyTorch's.
    traced = {PLUGRAD: bytes_per_node(PLUGRAD, memory_lengths[0], traced=True)}
    case = f"allocated by Python, {power(memory_lengths[0])} nodes"
    return [*report, Row("deep_graph", case, "bytes per node", traced)]
