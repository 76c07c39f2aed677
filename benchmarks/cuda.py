"""`python -m benchmarks.cuda [--smoke] [--json PATH] [names...]`: steps on a GPU, eager and
captured as CUDA graphs.

Without a GPU it says why there is none, and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import plugrad
from plugrad import nn, optim

CHAIN = 100
Step = Callable[..., Any]


@dataclass(frozen=True)
class Figure:
    """What a step took on average, in microseconds: the median and the best of the rounds."""

    benchmark: str
    how: str
    median: float
    minimum: float


@dataclass(frozen=True)
class Effort:
    """How often steps run."""

    rounds: int
    steps: int


def small_ops() -> tuple[Step, list[Any]]:
    """A chain of 100 multiplications of 4x4 matrices, forward and backward."""
    factor = plugrad.full((4, 4), 0.99, device="cuda")
    x = plugrad.ones(4, 4, device="cuda", requires_grad=True)

    def step(x: Any) -> Any:
        y = x
        for _ in range(CHAIN):
            y = y * factor
        (gradient,) = plugrad.autograd.grad(y.sum(), x)
        return gradient

    return step, [x]


def _training(model: Any, inputs: Any, classes: int) -> tuple[Step, list[Any]]:
    labels = plugrad.randint(0, classes, (inputs.shape[0],), device="cuda")
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, [inputs, labels]


def mlp() -> tuple[Step, list[Any]]:
    """Three layers of 256, a batch of 64."""
    layers = [nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)]
    return _training(nn.Sequential(*layers).to("cuda"), plugrad.randn(64, 256, device="cuda"), 10)


def cnn() -> tuple[Step, list[Any]]:
    """Two convolutions with pooling, 28x28 pictures, a batch of 64."""
    layers = [
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 7 * 7, 10)),
    ]
    pictures = plugrad.randn(64, 1, 28, 28, device="cuda")
    return _training(nn.Sequential(*layers).to("cuda"), pictures, 10)


class Block(nn.Module):  # type: ignore[misc]  # plugrad.nn is loaded lazily
    """One transformer block of width 128 over 64 positions."""

    def __init__(self, width: int = 128, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.head = nn.Linear(width, 10)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        q, k, v = self.into(self.first(x)).reshape(shape).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(mixed)
        x = x + self.down(nn.functional.gelu(self.up(self.second(x))))
        return self.head(x.mean(1))


def transformer() -> tuple[Step, list[Any]]:
    """One block, a batch of 16 sequences."""
    return _training(Block().to("cuda"), plugrad.randn(16, 64, 128, device="cuda"), 10)


BENCHMARKS: dict[str, Callable[[], tuple[Step, list[Any]]]] = {
    "small_ops": small_ops,
    "mlp": mlp,
    "cnn": cnn,
    "transformer": transformer,
}


def measure(name: str, how: str, step: Step, args: list[Any], effort: Effort) -> Figure:
    """Rounds of steps, each with one wait at the end, after a few that do not count."""
    for _ in range(3):
        step(*args)
    times = []
    for _ in range(effort.rounds):
        plugrad.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(effort.steps):
            step(*args)
        plugrad.cuda.synchronize()
        times.append((time.perf_counter() - start) / effort.steps * 1e6)
    return Figure(name, how, statistics.median(times), min(times))


def run(names: list[str], effort: Effort) -> list[Figure]:
    """Each benchmark eagerly, and as a CUDA graph."""
    figures = []
    for name in names:
        step, args = BENCHMARKS[name]()
        figures.append(measure(name, "eager", step, args, effort))
        captured = plugrad.cuda.capture(step, *args)
        figures.append(measure(name, "captured", captured, args, effort))
        for figure in figures[-2:]:
            print(f"{name:12} {figure.how:9} {figure.median:10.1f} us, best {figure.minimum:.1f}")
    return figures


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cuda", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of {', '.join(BENCHMARKS)}")
    parser.add_argument("--smoke", action="store_true", help="see that everything runs, quickly")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write all figures there")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(BENCHMARKS):
        parser.error(
            f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}"
        )
    try:
        plugrad.cuda.init()
    except RuntimeError as error:
        print(f"Nothing was measured: {error}")
        return
    where = {
        "gpu": plugrad.cuda.get_device_name(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    print(", ".join(where.values()))
    plugrad.manual_seed(0)
    effort = Effort(2, 2) if arguments.smoke else Effort(20, 50)
    figures = run(arguments.names or list(BENCHMARKS), effort)
    if arguments.json:
        report = {**where, "figures": [asdict(figure) for figure in figures]}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
