"""The cost of a recording of plugrad-viewer: training steps with and without, and a chain of the
smallest operators, where the recorder does more work than they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.libraries import libraries
from benchmarks.measure import PLUGRAD, Budget, Effort, Row, interleave
from benchmarks.network_steps import Case, library_step, mlp, plain_loss
from benchmarks.profiler import repeated

UNRECORDED = "unrecorded"
# Steps in one recording, so that its start and end do not matter.
STEPS = 4
# The limit of the slowdown while recording.
LIMIT = 5.0
CHAIN = 100


def cnn(lib: Any) -> Any:
    nn = lib.nn
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)),
    )


def adam(lib: Any, parameters: Any) -> Any:
    return lib.optim.AdamW(parameters, lr=1e-3)


CASES = (
    Case("CNN on 8 x 8 pixels, batch 32, AdamW", cnn, adam, plain_loss, (32, 1, 8, 8), (32, 10)),
    Case("MLP 64-128-128-10, batch 64, AdamW", mlp, adam, plain_loss, (64, 64), (64, 10)),
)


def recorded(module: Any, step: Callable[[], object], steps: int) -> Callable[[], object]:
    """`steps` steps in one recording. Its data are built later, on demand."""

    def run() -> None:
        with module.viewer.record():
            for _ in range(steps):
                step()

    return run


def chain(module: Any) -> Callable[[], object]:
    """Forward and backward of operators on 4 x 4 numbers."""
    x = module.ones(4, 4)
    weight = module.ones(4, 4, requires_grad=True)

    def step() -> None:
        y = weight
        for _ in range(CHAIN):
            y = y * x
        y.sum().backward()

    return step


def run(effort: Effort) -> list[Row]:
    (own,) = [library for library in libraries() if library.name == PLUGRAD]
    steps: list[tuple[str, Callable[[], object]]] = [
        (case.name, library_step(own, case)) for case in CASES
    ]
    steps.append((f"{CHAIN} products of 4 x 4", chain(own.module)))
    return [
        Row(
            "recording",
            f"{name}, recorded",
            "us per step",
            interleave(
                {PLUGRAD: recorded(own.module, step, STEPS), UNRECORDED: repeated(step, STEPS)},
                effort,
                units=STEPS,
            ),
            Budget(LIMIT, UNRECORDED),
        )
        for name, step in steps
    ]
