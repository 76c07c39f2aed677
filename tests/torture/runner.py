"""Runs cases of families in worker processes, and collects what they find.

A *turn* is a worker's life: it runs cases of one family, for its part of the time or of the cases.
A worker that ends by itself, hangs, or allocates memory without limit is a finding; the turn
continues after that case with a new worker.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import re
import signal
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.torture.families import Family
from tests.torture.finding import Finding
from tests.torture.worker import IDLE, work

# Python's message for a crash with PyTorch's frame as the innermost.
_TORCH_FIRST = re.compile(r"most recent call first\):\s+File \"[^\"]*[/\\]torch[/\\]")

# One thread per worker: there are as many workers as cores.
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
PRELOADED = ("tests.torture.preloaded",)
MOST = 1 << 40


@dataclass
class Tally:
    """The results of one family so far.

    Attributes:
        seconds: of processors, over all workers.
    """

    family: Family
    cases: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    groups: Counter[str] = field(default_factory=Counter)


@dataclass
class Group:
    """Findings that appear to be one fault."""

    family: Family
    seed: int
    finding: Finding


@dataclass
class Turn:
    tally: Tally
    position: int
    step: int
    cases: int
    seconds: float


class Worker:
    """A process and the turn that it works on."""

    def __init__(self, context: Any, turn: Turn, base: int, folder: Path) -> None:
        self.turn = turn
        self.log = folder / f"worker-{time.monotonic_ns()}.log"
        self.link: Connection
        self.link, other = context.Pipe()
        self.running = context.Array("d", [IDLE, 0.0, 0.0], lock=False)
        self.process = context.Process(
            target=work,
            args=(
                turn.tally.family,
                base,
                turn.position,
                turn.step,
                turn.cases,
                other,
                self.running,
                str(self.log),
            ),
            daemon=True,
        )
        self.process.start()
        other.close()
        self.since = time.monotonic()
        self.asked = False

    def said(self) -> str:
        """The end of what it printed."""
        return self.printed()[-3000:].strip()

    def printed(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def hangs(self) -> bool:
        return self.running[0] != IDLE and (
            time.monotonic() - self.running[1] > self.turn.tally.family.time_limit
        )

    def end(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.link.close()


class Runner:
    """Runs turns, `jobs` at a time.

    Args:
        seed: cases have the seeds from `seed * 1_000_000_000` on.
        show: called for each new group of findings as soon as there is one.
        tick: called from time to time with the progress.
        preloaded: modules that are imported before workers start.
    """

    def __init__(
        self,
        families: Sequence[Family],
        seed: int,
        jobs: int,
        *,
        show: Callable[[Group], None] = lambda group: None,
        tick: Callable[[Runner], None] = lambda runner: None,
        preloaded: Sequence[str] = PRELOADED,
    ) -> None:
        self.tallies = [Tally(family) for family in families]
        self.base = seed * 1_000_000_000
        self.jobs = jobs
        self.show = show
        self.tick = tick
        self.groups: dict[tuple[str, str], Group] = {}
        os.environ.update(THREADS)
        forks = "forkserver" in multiprocessing.get_all_start_methods()
        self.context = multiprocessing.get_context("forkserver" if forks else "spawn")
        if forks:
            self.context.set_forkserver_preload([*preloaded, "tests.torture.worker"])

    def run(self, minutes: float, cases: int = 0) -> None:
        """Run for so many minutes; or, if `cases` is given, so many cases of each family."""
        turns: deque[Turn] = deque()
        end = time.monotonic() + 60.0 * minutes
        for tally in self.tallies:
            for job in range(self.jobs):
                part = len(range(job, cases, self.jobs)) if cases else MOST
                if part:
                    turns.append(Turn(tally, job, self.jobs, part, 0.0))
        with tempfile.TemporaryDirectory() as folder:
            workers: list[Worker] = []
            try:
                while turns or workers:
                    while turns and len(workers) < self.jobs:
                        turn = turns.popleft()
                        if not cases:
                            turn.seconds = self.part(turn, turns, end - time.monotonic())
                        workers.append(Worker(self.context, turn, self.base, Path(folder)))
                    wait([worker.link for worker in workers], 0.2)
                    for worker in list(workers):
                        rest = self.attend(worker)
                        if worker.link.closed:
                            workers.remove(worker)
                            if rest is not None:
                                turns.appendleft(rest)
                    self.tick(self)
            finally:
                for worker in workers:
                    worker.end()

    def part(self, turn: Turn, later: Iterable[Turn], left: float) -> float:
        """How long a turn may last, so that those after it have their parts of what is left."""
        share = turn.tally.family.share
        shares = share + sum(other.tally.family.share for other in later)
        return max(1.0, left * self.jobs * share / max(shares, self.jobs * share))

    def attend(self, worker: Worker) -> Turn | None:
        """Take what a worker says, and end it if it has to; gives what remains of its turn."""
        turn = worker.turn
        ended = False
        try:
            while worker.link.poll():
                kind, *message = worker.link.recv()
                if kind == "finding":
                    self.found(turn.tally, *message)
                    continue
                done, seconds, counted, turn.position = message
                turn.tally.seconds += seconds
                turn.tally.cases += done
                turn.tally.counts.update(counted)
                turn.cases -= done
                ended = ended or kind == "end"
        except (EOFError, OSError):
            ended = ended or self.died(worker)
            if not ended:
                return self.rest(worker)
        used = time.monotonic() - worker.since
        if ended:
            worker.end()
            return None
        if worker.hangs():
            self.died(worker, hangs=True)
            return self.rest(worker)
        if turn.seconds and used > turn.seconds and not worker.asked:
            worker.asked = True
            worker.link.send("stop")
        return None

    def rest(self, worker: Worker) -> Turn | None:
        """What remains of the turn of a worker that was lost."""
        turn = worker.turn
        used = time.monotonic() - worker.since
        seed = int(worker.running[0])
        worker.end()
        if seed == IDLE:
            return None
        position = seed - self.base + turn.step
        done = (position - turn.position) // turn.step
        turn.tally.cases += done
        seconds = max(0.0, turn.seconds - used)
        if turn.cases - done <= 0 or (turn.seconds and seconds < 1.0):
            return None
        return Turn(turn.tally, position, turn.step, turn.cases - done, seconds)

    def died(self, worker: Worker, hangs: bool = False) -> bool:
        """Make a finding of a worker that ended by itself or hangs; whether no case was running."""
        family, seed = worker.turn.tally.family, int(worker.running[0])
        if hangs:
            os.kill(worker.process.pid, signal.SIGUSR1)
            time.sleep(0.5)
            what = f"does not end: {family.time_limit:.0f} s are over"
        else:
            worker.process.join(5.0)
            code = worker.process.exitcode
            name = signal.Signals(-code).name if code is not None and code < 0 else f"exit {code}"
            what = f"ends the process: {name}"
        if seed != IDLE and (worker.running[2] or _TORCH_FIRST.search(worker.printed())):
            worker.turn.tally.counts[f"PyTorch {what.partition(':')[0]}"] += 1
            return False
        if seed == IDLE:
            text = f"{family.name}: the worker {what}, between two cases\n{worker.said()}"
            self.found(worker.turn.tally, 0, Finding(text, family.program_of(0)))
            return True
        program = family.program_of(seed)
        summary = f"{family.name}: a case {what}\n{worker.said()}"
        # The last line of their programs distinguishes cases that end the same way.
        group = f"{what} {program.strip().splitlines()[-1].partition('(')[0]}"
        self.found(worker.turn.tally, seed, Finding(summary, program, group, not hangs))
        return False

    def found(self, tally: Tally, seed: int, finding: Finding) -> None:
        tally.groups[finding.key] += 1
        key = (tally.family.name, finding.key)
        if key not in self.groups and finding.program:
            self.groups[key] = Group(tally.family, seed, finding)
            self.show(self.groups[key])


def core_kind() -> str:
    """Whether the core that is imported is compiled or interpreted."""
    origin = importlib.import_module("plugrad.tensor.base").__file__ or ""
    return "interpreted" if origin.endswith(".py") else "compiled"
