"""A process that runs cases of one family and reports the findings to the runner."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import signal
import sys
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

from tests.torture.calls import silence
from tests.torture.families import Family
from tests.torture.finding import Finding, counts, state

MEMORY = 3 << 30
"""How many bytes of address space a worker may use beyond what it has once all is imported."""
BATCH = 0.5  # seconds between two messages
IDLE = -1

# Messages to the runner: ("finding", seed, Finding), ("batch" or "end", cases,
# seconds, counts, next position).


def limit_memory() -> None:
    """Make an allocation that is much too large fail, rather than the machine."""
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, most))


def run_safely(family: Family, seed: int) -> Finding | None:
    """A case; an exception that leaves it is a finding as well."""
    try:
        return family.run_case(seed)
    except Exception as error:
        text = traceback.format_exc()
        summary = f"{family.name}: the case raised {type(error).__name__}: {error}\n{text}"
        return Finding(summary, family.program_of(seed))


def work(
    family: Family,
    base: int,
    first: int,
    step: int,
    most: int,
    link: Connection,
    running: Any,
    log: str,
) -> None:
    """Run the cases `base + first`, `base + first + step`..., `most` of them, until stopped.

    Args:
        running: shared with the runner: the seed of the case that runs, since when, and whether
            PyTorch is at work.
        log: a file for the process's output, and for its stack when SIGUSR1 arrives.
    """
    os.setpgid(0, 0)  # Ctrl-C is the runner's
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    faulthandler.enable(sys.__stderr__ or output)
    faulthandler.register(signal.SIGUSR1, sys.__stderr__ or output, all_threads=True)
    silence()
    state[0] = running
    family.prepare()
    limit_memory()
    seen: set[str] = set()
    position, done, since, used = first, 0, time.monotonic(), time.process_time()
    cases = 0
    while done < most:
        seed = base + position
        running[1], running[2] = time.monotonic(), 0.0
        running[0] = seed
        finding = run_safely(family, seed)
        running[0] = IDLE
        position += step
        done += 1
        cases += 1
        if finding is not None:
            shown = finding if finding.key not in seen else Finding("", "", finding.key)
            seen.add(finding.key)
            link.send(("finding", seed, shown))
        if time.monotonic() - since > BATCH or done == most:
            now = time.process_time()
            link.send(("batch", cases, now - used, dict(counts), position))
            counts.clear()
            cases, since, used = 0, time.monotonic(), now
            if link.poll() and link.recv() == "stop":
                break
    link.send(("end", 0, 0.0, {}, position))
    link.close()
