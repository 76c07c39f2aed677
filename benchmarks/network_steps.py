"""Training steps as in programs: an LSTM, a transformer block and an MLP with Adam."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.libraries import Array, Library, libraries
from benchmarks.measure import PLUGRAD, Effort, Row, interleave

# Losses of the first steps may differ by rounding only.
TOLERANCE = 1e-4
STEPS_COMPARED = 3


@dataclass(frozen=True)
class Case:
    """A model and its optimizer in both libraries, and one batch.

    Attributes:
        name: the name of the row.
        model: makes the module from the library, which is seeded first.
        optimizer: makes the optimizer from the library and parameters.
        loss: a function of the library, the model, inputs and targets.
        inputs, targets: shapes, filled with normal numbers.
    """

    name: str
    model: Callable[[Any], Any]
    optimizer: Callable[[Any, Any], Any]
    loss: Callable[[Any, Any, Any, Any], Any]
    inputs: tuple[int, ...]
    targets: tuple[int, ...]


def lstm_loss(lib: Any, model: Any, x: Any, y: Any) -> Any:
    outputs, _ = model(x)
    return lib.nn.functional.mse_loss(outputs, y)


def plain_loss(lib: Any, model: Any, x: Any, y: Any) -> Any:
    return lib.nn.functional.mse_loss(model(x), y)


def mlp(lib: Any) -> Any:
    nn = lib.nn
    return nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
    )


CASES = (
    Case(
        "LSTM: 64 steps, hidden 128, batch 16, SGD",
        lambda lib: lib.nn.LSTM(32, 128),
        lambda lib, parameters: lib.optim.SGD(parameters, lr=0.01),
        lstm_loss,
        (64, 16, 32),
        (64, 16, 128),
    ),
    Case(
        "transformer block: width 64, 4 heads, batch 8 of length 32, AdamW",
        lambda lib: lib.nn.TransformerEncoderLayer(64, 4, 256, 0.0, batch_first=True),
        lambda lib, parameters: lib.optim.AdamW(parameters, lr=1e-4),
        plain_loss,
        (8, 32, 64),
        (8, 32, 64),
    ),
    Case(
        "MLP: 64-128-128-10, batch 64, Adam",
        mlp,
        lambda lib, parameters: lib.optim.Adam(parameters, lr=1e-3),
        plain_loss,
        (64, 64),
        (64, 10),
    ),
)


def library_step(library: Library, case: Case) -> Callable[[], Any]:
    """The step as a user of the library writes it; returns the loss."""
    lib = library.module
    lib.manual_seed(0)
    model = case.model(lib)
    optimizer = case.optimizer(lib, model.parameters())
    generator = np.random.default_rng(0)
    arrays: list[Array] = [
        generator.standard_normal(shape, dtype=np.float32) for shape in (case.inputs, case.targets)
    ]
    x, y = (library.constant(array) for array in arrays)

    def step() -> Any:
        optimizer.zero_grad()
        loss = case.loss(lib, model, x, y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def check_losses(case: Case, steps: dict[str, Callable[[], Any]]) -> None:
    """Check that all compute the same losses."""
    found = {
        name: [float(step().detach()) for _ in range(STEPS_COMPARED)]
        for name, step in steps.items()
    }
    for losses in found.values():
        if not np.allclose(losses, found[PLUGRAD], rtol=TOLERANCE):
            raise AssertionError(f"{case.name}: losses differ: {found}")


def run(effort: Effort) -> list[Row]:
    rows: list[Row] = []
    for case in CASES:
        steps = {library.name: library_step(library, case) for library in libraries()}
        check_losses(case, steps)
        samples = interleave(steps, effort)
        rows.append(Row("network_steps", case.name, "us per step", samples))
    return rows
