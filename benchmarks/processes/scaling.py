"""Predicted step times beside measured ones: DistributedDataParallel on 1, 2 and 4 processes.

    python -m benchmarks.processes.scaling [--seconds S] [--json FOLDER] [--smoke]

Four processes take turns: a few steps of each model on 1 process, on 2, on 4, a profile of
each model, what collectives cost. Processes that have no turn sleep. The fastest of all turns
counts on both sides, as whatever else runs on the machine only adds to it; medians are shown, too.
Each process computes with one thread. With more processes than cores, each computes slower by the
ratio of both: that is what the prediction assumes.

With --json, profiles, costs and the table are written to a folder, for the pictures of docs/.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import plugrad
import plugrad.distributed as dist
from plugrad import Tensor, nn, optim
from plugrad.distributed.simulate import (
    Costs,
    DataParallel,
    Point,
    Profile,
    measure_collectives,
    measure_contention,
    profile_step,
    simulate,
)

PROCESSES = (1, 2, 4)
ROOT = Path(__file__).resolve().parents[1]


def mlp() -> tuple[nn.Module, Tensor, Tensor]:
    """784-1024-1024-1024-10, batch 128."""
    widths = (784, 1024, 1024, 1024, 10)
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    return model, plugrad.randn(128, 784), plugrad.randint(0, 10, (128,))


def cnn() -> tuple[nn.Module, Tensor, Tensor]:
    """Three convolutions with batch norm on 32 x 32 images, batch 32."""
    layers: list[nn.Module] = []
    for before, after in ((3, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 16, 10))
    return model, plugrad.randn(32, 3, 32, 32), plugrad.randint(0, 10, (32,))


class Transformer(nn.Module):
    """Two blocks of width 256 with 4 heads, and a classifier of the mean."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(256, 4, 1024, 0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(256, 10)

    def forward(self, x: Tensor) -> Any:
        return self.head(self.blocks(x).mean(1))


def transformer() -> tuple[nn.Module, Tensor, Tensor]:
    return Transformer(), plugrad.randn(8, 64, 256), plugrad.randint(0, 10, (8,))


MODELS: dict[str, Callable[[], tuple[nn.Module, Tensor, Tensor]]] = {
    "mlp": mlp,
    "cnn": cnn,
    "transformer": transformer,
}


def training_step(model: Any, x: Tensor, y: Tensor) -> Callable[[], None]:
    """A step with SGD with momentum."""
    optimizer = optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


# What the processes do


class Turns:
    """Turns of the ranks. The first rank has part in all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = 0

    def take(self, ranks: int, action: Callable[[], None]) -> None:
        """Call something on the first ranks, while the others sleep: waiting in MPI would keep
        cores busy."""
        over = self.folder / f"turn-{self.number}"
        self.number += 1
        if dist.get_rank() < ranks:
            action()
        if dist.get_rank() == 0:
            over.touch()
        while not over.exists():
            time.sleep(0.005)


class Contest:
    """The models on the first 1, 2 and 4 ranks, and what was found so far, on the first rank."""

    def __init__(self, folder: Path) -> None:
        self.turns = Turns(folder)
        self.folder = folder
        self.steps: dict[tuple[str, int], Callable[[], None]] = {}
        self.groups: dict[int, Any] = {}
        self.times: dict[tuple[str, int], list[float]] = {}
        self.profiles: dict[str, Profile] = {}
        self.costs: Costs | None = None
        self.contentions: dict[str, list[float]] = {}
        for ranks in PROCESSES:
            group = self.groups[ranks] = dist.new_group(list(range(ranks)))
            for name, make in MODELS.items():
                self.times[name, ranks] = []
                if dist.get_rank() < ranks:
                    plugrad.manual_seed(0)
                    model, x, y = make()
                    wrapped = nn.parallel.DistributedDataParallel(model, process_group=group)
                    step = self.steps[name, ranks] = training_step(wrapped, x, y)
                    for _ in range(3):
                        step()

    def run_steps(self, name: str, ranks: int, count: int) -> None:
        """A step takes as long as on its slowest rank."""
        own: list[float] = []
        group, step = self.groups[ranks], self.steps[name, ranks]
        for _ in range(count):
            dist.barrier(group=group)
            start = time.perf_counter()
            step()
            own.append(time.perf_counter() - start)
        every: list[Any] = [None] * ranks
        dist.all_gather_object(every, own, group=group)
        self.times[name, ranks] += [max(each) for each in zip(*every, strict=True)]

    def profile(self, name: str) -> None:
        model, x, y = MODELS[name]()
        found = profile_step(training_step(model, x, y), repeats=2)
        best = self.profiles.setdefault(name, found)
        if found.step_seconds < best.step_seconds:
            self.profiles[name] = found

    def measure_costs(self) -> None:
        self.costs = fastest(self.costs, measure_collectives(rounds=5, seconds=0.2))

    def measure_contention(self, name: str) -> None:
        """Of a step without communication, on as many ranks as there are cores."""
        plain = training_step(*MODELS[name]())
        found = measure_contention(plain, self.groups[2])
        self.contentions.setdefault(name, []).append(found)

    def costs_of(self, name: str) -> Costs:
        """A ratio is not the less the better: the median counts."""
        assert self.costs is not None
        return replace(self.costs, contention=statistics.median(self.contentions[name]))

    def round(self, count: int) -> None:
        for name in MODELS:
            for ranks in PROCESSES:
                self.turns.take(ranks, lambda n=name, r=ranks: self.run_steps(n, r, count))
            self.turns.take(1, lambda n=name: self.profile(n))
            self.turns.take(2, lambda n=name: self.measure_contention(n))
        self.turns.take(max(PROCESSES), self.measure_costs)

    def rows(self) -> list[dict[str, Any]]:
        """Those of the table."""
        found = []
        for (name, ranks), own in sorted(self.times.items()):
            predicted = simulate(self.profiles[name], DataParallel(), ranks, self.costs_of(name))
            found.append({
                "model": name,
                "processes": ranks,
                "predicted": predicted.step_time,
                "fastest": min(own),
                "median": statistics.median(own),
                "steps": len(own),
                "contention": self.costs_of(name).contention,
            })  # fmt: skip
        return found

    def write(self, folder: Path) -> None:
        assert self.costs is not None
        folder.mkdir(parents=True, exist_ok=True)
        self.costs.save(folder / "costs.json")
        for name, profile in self.profiles.items():
            profile.save(folder / f"{name}.json")
        (folder / "ddp.json").write_text(json.dumps(self.rows(), indent=1) + "\n")


def fastest(one: Costs | None, other: Costs) -> Costs:
    """The less of each figure of two measurements."""
    if one is None:
        return other
    measured = {
        name: [
            Point(a.ranks, a.size, min(a.seconds, b.seconds))
            for a, b in zip(points, other.measured[name], strict=True)
        ]
        for name, points in one.measured.items()
    }
    return Costs.fitted(
        measured,
        cores=int(one.cores),
        contention=other.contention,
        copy=min(one.copy, other.copy),
        overlap=max(one.overlap, other.overlap),
        about=one.about,
    )


def run_worker(folder: Path, seconds: float, count: int) -> None:
    dist.init_process_group()
    contest = Contest(folder)
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


# What starts them


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
    lines = ["model        processes  predicted     fastest      median  predicted/fastest"]
    lines += [
        f"{row['model']:<12} {row['processes']:>9} {row['predicted'] * 1e3:>7.1f} ms "
        f"{row['fastest'] * 1e3:>8.1f} ms {row['median'] * 1e3:>8.1f} ms "
        f"{row['predicted'] / row['fastest']:>18.2f}"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.processes.scaling", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--seconds", type=float, default=120.0, metavar="S",
        help="turns are taken for so long; the table so far is printed after each round "
        "(default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FOLDER", help="write all figures there")
    parser.add_argument("--smoke", action="store_true", help="see that everything runs, quickly")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        folder, seconds, count = arguments.worker
        run_worker(Path(folder), float(seconds), int(count))
        return
    with tempfile.TemporaryDirectory() as temporary:
        seconds, count = (0.0, 1) if arguments.smoke else (arguments.seconds, 4)
        launch(temporary, str(seconds), str(count))
        if arguments.json:
            shutil.copytree(Path(temporary) / "found", arguments.json, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
