"""Training steps on the CPU through `plugrad.compile`, by the tape and by XLA, against PyTorch and
eager plugrad."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.libraries import libraries
from benchmarks.measure import EAGER, PLUGRAD, TORCH, XLA, Budget, Effort, Row, interleave
from benchmarks.network_steps import CASES as NETWORKS
from benchmarks.network_steps import Case, check_losses, library_step, plain_loss


def cnn(lib: Any) -> Any:
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(512, 10),
    )


LSTM, TRANSFORMER, MLP_ADAM = NETWORKS
MLP_SGD = replace(
    MLP_ADAM,
    name="MLP: 64-128-128-10, batch 64, SGD with momentum",
    optimizer=lambda lib, parameters: lib.optim.SGD(parameters, lr=0.01, momentum=0.9),
)
CNN = Case(
    "CNN: two convolutions and a linear layer, batch 32 of 16 x 16, SGD with momentum",
    cnn,
    MLP_SGD.optimizer,
    plain_loss,
    (32, 3, 16, 16),
    (32, 10),
)
# The limit of the compiled step's time, as a ratio to PyTorch's.
LIMITS: dict[Case, float] = {MLP_SGD: 0.40, MLP_ADAM: 0.35, CNN: 0.9, TRANSFORMER: 0.75, LSTM: 0.8}


def rows(effort: Effort) -> list[Row]:
    compile: Callable[..., Any] = importlib.import_module("plugrad").compile
    found: list[Row] = []
    for case, limit in LIMITS.items():
        steps: dict[str, Callable[[], Any]] = {}
        for library in libraries():
            if library.name == PLUGRAD:
                steps[PLUGRAD] = compile(library_step(library, case))
                steps[EAGER] = library_step(library, case)
                # XLA compiles 64 steps of an LSTM one by one, which takes minutes.
                if case is not LSTM and importlib.util.find_spec("plugrad_jax"):
                    steps[XLA] = compile(library_step(library, case), backend="jax")
            elif library.name == TORCH:
                steps[TORCH] = library_step(library, case)
        check_losses(case, steps)
        samples = interleave(steps, effort)
        name = f"on the processor, {case.name}"
        found.append(Row("captured_steps", name, "us per step", samples, Budget(limit, TORCH)))
    return found
