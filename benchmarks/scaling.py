"""Predicted step times beside measured ones: DistributedDataParallel on 1, 2 and 4 processes.

    python -m benchmarks.scaling [--rounds R] [--json FOLDER] [--smoke]

Programs are started by mpiexec, a round after the other: one process that measures and profiles
each model, then 2 and 4 that train it. A program of its own measures what collectives cost.
The fastest round counts on both sides, as whatever else runs on the machine only adds to it;
medians are shown, too. Each process computes with one thread. With more processes than cores, each
computes slower by the ratio of both: that is what the prediction assumes.

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
    profile_step,
    simulate,
)

PROCESSES = (1, 2, 4)
ROOT = Path(__file__).resolve().parents[1]


def mlp() -> tuple[nn.Module, Tensor, Tensor]:
    """784-1024-1024-1024-10, batch 256."""
    widths = (784, 1024, 1024, 1024, 10)
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    return model, plugrad.randn(256, 784), plugrad.randint(0, 10, (256,))


def cnn() -> tuple[nn.Module, Tensor, Tensor]:
    """Three convolutions with batch norm on 32 x 32 images, batch 64."""
    layers: list[nn.Module] = []
    for before, after in ((3, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 16, 10))
    return model, plugrad.randn(64, 3, 32, 32), plugrad.randint(0, 10, (64,))


class Transformer(nn.Module):
    """Four blocks of width 256 with 4 heads, and a classifier of the mean."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(256, 4, 1024, 0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(256, 10)

    def forward(self, x: Tensor) -> Any:
        return self.head(self.blocks(x).mean(1))


def transformer() -> tuple[nn.Module, Tensor, Tensor]:
    return Transformer(), plugrad.randn(16, 64, 256), plugrad.randint(0, 10, (16,))


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


def measure_costs(folder: Path) -> None:
    costs = measure_collectives(seconds=0.4)
    if dist.get_rank() == 0:
        costs.save(folder / "costs.json")


def train(folder: Path, steps: int) -> None:
    """Seconds of the steps of each model; one process alone profiles it, too."""
    world = dist.get_world_size()
    found: dict[str, Any] = {}
    for name, make in MODELS.items():
        plugrad.manual_seed(0)
        model, x, y = make()
        wrapped = nn.parallel.DistributedDataParallel(model)
        step = training_step(wrapped, x, y)
        for _ in range(3):
            step()
        times: list[float] = []
        for _ in range(steps):
            dist.barrier()
            start = time.perf_counter()
            step()
            times.append(time.perf_counter() - start)
        every: list[Any] = [None] * world
        dist.all_gather_object(every, times)
        found[name] = [max(each) for each in zip(*every, strict=True)]
        if world == 1:
            plain = training_step(model, x, y)
            profile_step(plain, repeats=steps).save(folder / f"{name}.json")
    if dist.get_rank() == 0:
        (folder / f"times-{world}.json").write_text(json.dumps(found))


def run_worker(arguments: list[str]) -> None:
    dist.init_process_group()
    kind, folder, steps = arguments
    if kind == "costs":
        measure_costs(Path(folder))
    else:
        train(Path(folder), int(steps))
    dist.destroy_process_group()


# What starts them


def launch(processes: int, *arguments: str) -> None:
    beside = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    mpiexec = beside or shutil.which("mpiexec")
    if mpiexec is None:
        raise SystemExit("mpiexec is not installed: pip install 'plugrad-distributed[mpi]'")
    command = [mpiexec, "-n", str(processes), sys.executable, "-m", "benchmarks.scaling"]
    subprocess.run([*command, "--worker", *arguments], check=True, cwd=ROOT)


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
        contention=min(one.contention, other.contention),
        copy=min(one.copy, other.copy),
        overlap=max(one.overlap, other.overlap),
        about=one.about,
    )


def measure(folder: Path, rounds: int, steps: int) -> list[dict[str, Any]]:
    """Rows of the table; profiles and costs are left in the folder."""
    times: dict[tuple[str, int], list[list[float]]] = {}
    best: dict[str, Profile] = {}
    costs: Costs | None = None
    for _ in range(rounds):
        launch(max(PROCESSES), "costs", str(folder), "0")
        costs = fastest(costs, Costs.load(folder / "costs.json"))
        for processes in PROCESSES:
            launch(processes, "train", str(folder), str(steps))
            found = json.loads((folder / f"times-{processes}.json").read_text())
            for name, own in found.items():
                times.setdefault((name, processes), []).append(own)
        for name in MODELS:
            profile = Profile.load(folder / f"{name}.json")
            if name not in best or profile.step_seconds < best[name].step_seconds:
                best[name] = profile
    assert costs is not None
    costs.save(folder / "costs.json")
    rows = []
    for name, profile in best.items():
        profile.save(folder / f"{name}.json")
        for processes in PROCESSES:
            own = times[name, processes]
            predicted = simulate(profile, DataParallel(), processes, costs)
            rows.append({
                "model": name,
                "processes": processes,
                "predicted": predicted.step_time,
                "fastest": min(statistics.median(each) for each in own),
                "median": statistics.median([value for each in own for value in each]),
            })  # fmt: skip
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["model        processes  predicted  fastest round  median     predicted/fastest"]
    lines += [
        f"{row['model']:<12} {row['processes']:>9} {row['predicted'] * 1e3:>7.1f} ms "
        f"{row['fastest'] * 1e3:>11.1f} ms {row['median'] * 1e3:>7.1f} ms "
        f"{row['predicted'] / row['fastest']:>14.2f}"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--rounds", type=int, default=5, metavar="R", help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=15, metavar="N", help="default: %(default)s")
    parser.add_argument("--json", type=Path, metavar="FOLDER", help="write all figures there")
    parser.add_argument("--smoke", action="store_true", help="see that everything runs, quickly")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        run_worker(arguments.worker)
        return
    rounds, steps = (1, 2) if arguments.smoke else (arguments.rounds, arguments.steps)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        rows = measure(folder, rounds, steps)
        print(table(rows))
        if arguments.json:
            arguments.json.mkdir(parents=True, exist_ok=True)
            for name in ("costs", *MODELS):
                shutil.copy(folder / f"{name}.json", arguments.json)
            (arguments.json / "ddp.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
