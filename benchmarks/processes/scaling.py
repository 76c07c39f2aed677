"""Compares predicted steps with measured ones: four ways to distribute a model over 1, 2 and 4
processes.

    python -m benchmarks.processes.scaling [--seconds S] [--json FOLDER] [--smoke]

The ways are DistributedDataParallel, fully sharded, tensor parallel and pipeline. Four processes
take turns: a few steps of each model and each way on 1, 2 and 4 processes, a profile of each model,
and the cost of communication. Processes without a turn sleep. On both sides the fastest turn
counts, because other load on the machine only adds time; medians are shown, too. Each process
computes with one thread. If there are more processes than cores, they share the cores, as the
prediction assumes. Memory is what Python and NumPy allocate, by tracemalloc.

With --json, profiles, costs and the table are written to a folder, for the pictures of docs/.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("PLUGRAD_NUM_THREADS", "1")

import plugrad
import plugrad.distributed as dist
from benchmarks.processes.scaled_models import (
    MICROBATCHES,
    MODELS,
    SPREAD,
    Scaled,
    layer_cuts,
    optimizer_of,
    training_step,
)
from benchmarks.report import extras, processor
from plugrad import nn
from plugrad.distributed.simulate import (
    Costs,
    DataParallel,
    FullySharded,
    Overheads,
    Pipeline,
    Prediction,
    Profile,
    TensorParallel,
    fastest,
    measure_collectives,
    measure_contention,
    profile_step,
    simulate,
)
from plugrad_distributed.planning.overheads import middle

PROCESSES = (1, 2, 4)
ROOT = Path(__file__).resolve().parents[2]

Case = tuple[str, str, int]


def cases() -> Iterator[Case]:
    """Model, strategy and processes. Convolutions have no tensor parallel style."""
    for name, make in MODELS.items():
        scaled = make()
        for way in SPREAD:
            if way == "tensor parallel" and not scaled.plan:
                continue
            for ranks in PROCESSES:
                yield name, way, ranks


def predicted(scaled: Scaled, way: str, ranks: int, profile: Profile, costs: Costs) -> Prediction:
    """The prediction of `simulate` for a case, with the same units and stages as in the run."""
    if way == "data parallel":
        return simulate(profile, DataParallel(), ranks, costs)
    if way == "tensor parallel":
        return simulate(profile, TensorParallel(ranks), ranks, costs)
    if way == "fully sharded":
        cuts = layer_cuts(scaled.parts, range(1, len(scaled.parts)))
        return simulate(profile, FullySharded(cuts=cuts), ranks, costs)
    cuts = layer_cuts(scaled.parts, scaled.stages.get(ranks, ()))
    return simulate(profile, Pipeline(ranks, MICROBATCHES, cuts=cuts), ranks, costs)


# The work of the processes


class Turns:
    """Groups of ranks that are measured in turn. The first rank is in all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = 0

    def take(self, ranks: int, action: Callable[[], None]) -> None:
        """Call a function on the first ranks, while the others sleep, because waiting in MPI would
        keep cores busy."""
        over = self.folder / f"turn-{self.number}"
        self.number += 1
        if dist.get_rank() < ranks:
            action()
        if dist.get_rank() == 0:
            over.touch()
        while not over.exists():
            time.sleep(0.005)


class Plain:
    """A model on one rank, for its profile and the contention of ranks."""

    def __init__(self, scaled: Scaled) -> None:
        self.batch = scaled.x, scaled.y
        self.model = nn.Sequential(*scaled.parts)
        self.step = training_step(self.model, scaled)
        self.optimizer = optimizer_of(self.model.parameters())
        self.fastest = math.inf

    def profile(self) -> Profile:
        """The optimizer updates all parameters by one call, which is measured separately: the
        captured one counts its steps in tensors."""
        smaller = tuple([each[: len(each) // MICROBATCHES] for each in self.batch])

        def backward(x: Any, y: Any) -> None:
            self.model.zero_grad()
            nn.functional.cross_entropy(self.model(x), y).backward()

        return profile_step(
            backward, *self.batch, optimizer=self.optimizer, smaller=smaller, repeats=2
        )


class Contest:
    """The models on the first 1, 2 and 4 ranks, and the results so far, on the first rank."""

    def __init__(self, folder: Path, load: float) -> None:
        self.turns = Turns(folder)
        self.about = about(load)
        self.steps: dict[Case, Callable[[], None]] = {}
        self.times: dict[Case, list[float]] = {case: [] for case in cases()}
        self.memory: dict[Case, float] = {}
        self.profiles: dict[str, list[Profile]] = {}
        self.costs: Costs | None = None
        self.ratios: list[tuple[float, float, float]] = []
        self.overheads: list[Overheads] = []
        self.contentions: dict[str, list[float]] = {}
        self.groups = {ranks: dist.new_group(list(range(ranks))) for ranks in PROCESSES}
        self.plain = {name: Plain(make()) for name, make in MODELS.items()}
        for case in self.times:
            self.turns.take(case[2], lambda c=case: self.prepare(c))

    def prepare(self, case: Case) -> None:
        """Make a case's model, and measure the memory of a step."""
        name, way, ranks = case
        group = self.groups[ranks]

        def make() -> Callable[[], None]:
            plugrad.manual_seed(0)
            step = SPREAD[way](MODELS[name](), group)
            step()
            step()
            return step

        make()  # exclude what is loaded or made only once
        gc.collect()
        tracemalloc.start()
        try:
            step = self.steps[case] = make()
            gc.collect()
            tracemalloc.reset_peak()
            step()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        every: list[Any] = [None] * ranks
        dist.all_gather_object(every, peak, group=group)
        self.memory[case] = max(every)

    def run_steps(self, case: Case, count: int) -> None:
        """A step takes as long as its slowest rank."""
        own: list[float] = []
        group, step = self.groups[case[2]], self.steps[case]
        for _ in range(count):
            dist.barrier(group=group)
            start = time.perf_counter()
            step()
            own.append(time.perf_counter() - start)
        every: list[Any] = [None] * case[2]
        dist.all_gather_object(every, own, group=group)
        self.times[case] += [max(each) for each in zip(*every, strict=True)]

    def profile(self, name: str, count: int) -> None:
        plain = self.plain[name]
        self.profiles.setdefault(name, []).append(plain.profile())
        for _ in range(count):
            start = time.perf_counter()
            plain.step()
            plain.fastest = min(plain.fastest, time.perf_counter() - start)

    def profile_of(self, name: str) -> Profile:
        """The fastest profile, scaled to the fastest step of all turns. Costs that do not depend on
        the batch are differences, so their median counts."""
        found = self.profiles[name]
        best = min(found, key=lambda each: each.step_seconds)
        scale = min(1.0, self.plain[name].fastest / best.step_seconds)
        nodes = [
            replace(
                node,
                seconds=node.seconds * scale,
                fixed=node.fixed * scale,
                held=min(node.seconds - node.fixed, statistics.median(held)) * scale,
            )
            for node, *held in zip(
                best.nodes, *([node.held for node in each.nodes] for each in found), strict=True
            )
        ]
        return replace(best, nodes=tuple(nodes), step_seconds=best.step_seconds * scale)

    def measure_costs(self) -> None:
        found = measure_collectives(rounds=5, seconds=0.2, optimizer=optimizer_of)
        self.ratios.append((found.overlap, found.waiting, found.late))
        self.overheads.append(found.overheads)
        best = found if self.costs is None else fastest(self.costs, found)
        # Of ratios and differences, the median counts: less is not better.
        overlap, waiting, late = (
            statistics.median(each) for each in zip(*self.ratios, strict=True)
        )
        self.costs = replace(
            best, overlap=overlap, waiting=waiting, late=late, overheads=middle(self.overheads)
        )

    def measure_contention(self, name: str) -> None:
        """The slowdown of a step without communication, on as many ranks as there are cores."""
        found = measure_contention(self.plain[name].step, self.groups[2])
        self.contentions.setdefault(name, []).append(found)

    def costs_of(self, name: str) -> Costs:
        """For a ratio, lower is not better, so the median counts."""
        assert self.costs is not None
        return replace(self.costs, contention=statistics.median(self.contentions[name]))

    def round(self, count: int) -> None:
        for name in MODELS:
            for case in self.times:
                if case[0] == name:
                    self.turns.take(case[2], lambda c=case: self.run_steps(c, count))
            self.turns.take(1, lambda n=name: self.profile(n, count))
            self.turns.take(2, lambda n=name: self.measure_contention(n))
        self.turns.take(max(PROCESSES), self.measure_costs)

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table."""
        found = []
        made = {name: make() for name, make in MODELS.items()}
        profiles = {name: self.profile_of(name) for name in MODELS}
        for case, own in self.times.items():
            name, way, ranks = case
            costs = self.costs_of(name)
            expected = predicted(made[name], way, ranks, profiles[name], costs)
            found.append({
                "model": name,
                "strategy": way,
                "processes": ranks,
                "predicted": expected.step_time,
                "fastest": min(own),
                "median": statistics.median(own),
                "steps": len(own),
                "predicted_bytes": expected.memory.total,
                "measured_bytes": self.memory[case],
                "contention": costs.contention,
            })  # fmt: skip
        return found

    def write(self, folder: Path) -> None:
        assert self.costs is not None
        folder.mkdir(parents=True, exist_ok=True)
        self.costs.save(folder / "costs.json")
        for name in MODELS:
            self.profile_of(name).save(folder / f"{name}.json")
        found = {"about": self.about, "rows": self.rows()}
        (folder / "measured.json").write_text(json.dumps(found, indent=1) + "\n")


def about(load: float) -> dict[str, str]:
    """The conditions of the measurement."""
    origin = import_module("plugrad.tensor.base").__file__ or ""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores, {processor()}",
        "core": "interpreted" if origin.endswith(".py") else "compiled",
        "extras": extras(),
        "mpi": " ".join(import_module("mpi4py.MPI").Get_library_version().split("\n")[0].split()),
        "load": f"{load:.1f}",
    }


def run_worker(folder: Path, seconds: float, count: int, load: float) -> None:
    dist.init_process_group()
    contest = Contest(folder, load)
    end = time.monotonic() + seconds
    goes_on = [True]
    while goes_on[0]:
        contest.round(count)
        if dist.get_rank() == 0:
            contest.write(folder / "found")
            print(table(contest.rows()), flush=True)
        goes_on = [time.monotonic() < end]
        dist.broadcast_object_list(goes_on, src=0)
    dist.destroy_process_group()


# Starting the processes


def launch(*arguments: str) -> None:
    beside = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    mpiexec = beside or shutil.which("mpiexec")
    if mpiexec is None:
        raise SystemExit("mpiexec is not installed: pip install 'plugrad-distributed[mpi]'")
    command = [
        mpiexec,
        "-n",
        str(max(PROCESSES)),
        sys.executable,
        "-m",
        "benchmarks.processes.scaling",
    ]
    subprocess.run([*command, "--worker", *arguments], check=True, cwd=ROOT)


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        f"{'model':<12}{'strategy':<16}{'n':>2}{'predicted':>11}{'fastest':>10}{'median':>10}"
        f"{'ratio':>7}{'predicted':>12}{'memory':>9}{'ratio':>7}"
    ]
    lines += [
        f"{row['model']:<12}{row['strategy']:<16}{row['processes']:>2}"
        f"{row['predicted'] * 1e3:>8.1f} ms{row['fastest'] * 1e3:>7.1f} ms"
        f"{row['median'] * 1e3:>7.1f} ms{row['predicted'] / row['fastest']:>7.2f}"
        f"{row['predicted_bytes'] / 1e6:>9.1f} MB{row['measured_bytes'] / 1e6:>6.1f} MB"
        f"{row['predicted_bytes'] / row['measured_bytes']:>7.2f}"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.processes.scaling", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--seconds", type=float, default=300.0, metavar="S",
        help="how long to measure; each round prints the table so far (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--json", type=Path, metavar="FOLDER", help="write all figures to this file"
    )
    parser.add_argument("--smoke", action="store_true", help="only check that everything runs")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        folder, seconds, count, load = arguments.worker
        run_worker(Path(folder), float(seconds), int(count), float(load))
        return
    with tempfile.TemporaryDirectory() as temporary:
        seconds, count = (0.0, 1) if arguments.smoke else (arguments.seconds, 4)
        # Read before the run itself keeps the cores busy.
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        launch(temporary, str(seconds), str(count), str(load))
        if arguments.json:
            shutil.copytree(Path(temporary) / "found", arguments.json, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
