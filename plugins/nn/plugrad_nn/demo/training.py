"""The demo's training loop: what a PyTorch user would write."""

from __future__ import annotations

import copy
import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from threadpoolctl import threadpool_limits

import plugrad
from plugrad import Tensor
from plugrad import device as Device
from plugrad_nn import nn, optim
from plugrad_nn.demo.processes import Ranks

WARM_UP_STEPS = 3
TIMED_STEPS = 30

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Recipe:
    """How to train; `captured` says whether steps are compiled where the backend can."""

    epochs: int
    batch_size: int
    lr: float
    seed: int
    captured: bool = True

    def rate(self, epoch: int) -> float:
        """The learning rate of an epoch, from 1: half a cosine, down to nearly 0."""
        return self.lr * (1 + math.cos(math.pi * (epoch - 1) / self.epochs)) / 2


@dataclass
class Curves:
    """The measurements: the loss of every step, and the score after every epoch."""

    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def steps_per_second(self) -> float:
        """Training steps only; the time of the evaluations is not in it."""
        return len(self.losses) / self.seconds if self.seconds else 0.0

    @property
    def recent_loss(self) -> float:
        """The mean of the last steps."""
        recent = self.losses[-20:]
        return sum(recent) / len(recent)


class Watcher(Protocol):
    """Is called after every step, and after every epoch with its score."""

    def __call__(self, epoch: int, curves: Curves, done: bool) -> None: ...


class Task(Protocol):
    """A task: the model to train, and its data.

    Attributes:
        name: of the folder of a run.
        threads: how many threads matrix products may use; None for all.
    """

    name: str
    threads: int | None

    def make_model(self) -> nn.Module:
        """A model with its first weights."""

    def steps(self, recipe: Recipe) -> int:
        """Steps of an epoch."""

    def batches(self, recipe: Recipe, epoch: int, ranks: Ranks | None) -> Iterable[Batch]:
        """An epoch's batches, on the CPU; the same ones for the same seed and epoch."""

    def loss(self, model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        """What is made small."""

    def score(self, model: nn.Module, device: Device) -> float:
        """How good the model is on data that is held out."""

    def told(self, score: float) -> str:
        """A score in words."""


Step = Callable[[Tensor, Tensor], Tensor]


def make_step(task: Task, model: nn.Module, optimizer: optim.Optimizer) -> Step:
    """One step of training, from a batch to its loss."""

    def step(inputs: Tensor, targets: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = task.loss(model, inputs, targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


class Training:
    """A run that can be stopped after any epoch, and resumed.

    It uses AdamW. With `ranks`, each process takes its share of a batch, and gradients are
    averaged.
    """

    def __init__(self, task: Task, model: nn.Module, recipe: Recipe) -> None:
        self.task = task
        self.model = model
        self.recipe = recipe
        self.curves = Curves()
        self.done = 0
        self._optimizer = optim.AdamW(model.parameters(), lr=recipe.lr)

    def state(self) -> dict[str, Any]:
        """The state that another process needs to continue."""
        curves = asdict(self.curves)
        for name in ("losses", "scores"):
            curves[name] = plugrad.tensor(curves[name], dtype=plugrad.float64, device="cpu")
        return {
            "model": self.model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "recipe": asdict(self.recipe),
            "curves": curves,
            "epochs": self.done,
        }

    def take_up(self, state: Mapping[str, Any]) -> None:
        """Continue from a state, up to the number of epochs of this recipe."""
        self.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        curves = state["curves"]
        self.curves = Curves(
            curves["losses"].tolist(), curves["scores"].tolist(), curves["seconds"]
        )
        self.done = state["epochs"]

    def run(
        self,
        watch: Watcher,
        device: Device,
        ranks: Ranks | None = None,
        keep: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> Curves:
        """Train the model, which is on `device`; `keep` gets the state after every epoch."""
        model = self.model if ranks is None else ranks.parallel(self.model)
        step = make_step(self.task, model, self._optimizer)
        if self.recipe.captured and ranks is None:
            step = plugrad.compile(step, device=device)
        with threadpool_limits(limits=self.task.threads, user_api="blas"):
            for epoch in range(self.done + 1, self.recipe.epochs + 1):
                self._run_epoch(step, epoch, watch, device, ranks)
                self.curves.scores.append(self.task.score(self.model, device))
                self.done = epoch
                if keep is not None:
                    keep(self.state())
                watch(epoch, self.curves, True)
        return self.curves

    def _run_epoch(
        self, step: Step, epoch: int, watch: Watcher, device: Device, ranks: Ranks | None
    ) -> None:
        self.model.train()
        for group in self._optimizer.param_groups:
            group["lr"] = self.recipe.rate(epoch)
        # By epoch, so that a resumed run continues as if it had not been stopped.
        plugrad.manual_seed(self.recipe.seed + epoch)
        curves = self.curves
        for inputs, targets in self.task.batches(self.recipe, epoch, ranks):
            started = time.perf_counter()
            loss = step(inputs.to(device), targets.to(device))
            if ranks is not None:
                loss = ranks.mean(loss)
            curves.losses.append(float(loss))
            curves.seconds += time.perf_counter() - started
            watch(epoch, curves, False)


def one_step(training: Training, device: Device) -> tuple[Step, list[Tensor]]:
    """A step on a copy of the model, eager, and a batch for it."""
    model = copy.deepcopy(training.model).train()
    optimizer = optim.AdamW(model.parameters(), lr=training.recipe.lr)
    batch = next(iter(training.task.batches(training.recipe, 1, None)))
    return make_step(training.task, model, optimizer), [part.to(device) for part in batch]


def time_steps(training: Training, device: Device) -> tuple[float | None, float]:
    """Median seconds of a step on one batch, captured (None if `device` compiles nothing) and
    eager; the model stays as it is."""
    eager, batch = one_step(training, device)
    captured = plugrad.compile(eager, device=device)
    with threadpool_limits(limits=training.task.threads, user_api="blas"):
        return (
            None if captured is eager else _median_seconds(captured, batch),
            _median_seconds(eager, batch),
        )


def _median_seconds(step: Step, batch: list[Tensor]) -> float:
    times = []
    for _ in range(WARM_UP_STEPS + TIMED_STEPS):
        started = time.perf_counter()
        step(*batch).item()
        times.append(time.perf_counter() - started)
    return statistics.median(times[WARM_UP_STEPS:])
