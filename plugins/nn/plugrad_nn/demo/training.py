"""The demo's training loop: what a PyTorch user would write."""

from __future__ import annotations

import copy
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from threadpoolctl import threadpool_limits

import plugrad
from plugrad import Tensor
from plugrad import device as Device
from plugrad_nn import nn, optim
from plugrad_nn.demo.digits import Digits
from plugrad_nn.demo.processes import Ranks
from plugrad_nn.nn import functional as F
from plugrad_nn.utils.data import DataLoader, TensorDataset

WARM_UP_STEPS = 3
TIMED_STEPS = 30


@dataclass(frozen=True)
class Recipe:
    """How to train; `captured` says whether steps are compiled where the backend can."""

    epochs: int
    batch_size: int
    lr: float
    seed: int
    captured: bool = True

    def steps(self, samples: int) -> int:
        """Optimizer steps over the whole training."""
        return self.epochs * math.ceil(samples / self.batch_size)


@dataclass
class Curves:
    """What was measured: the loss of every step, and after every epoch the held-out accuracy."""

    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def steps_per_second(self) -> float:
        """Training steps only; the time of the evaluations is not in it."""
        return len(self.losses) / self.seconds if self.seconds else 0.0


class Watcher(Protocol):
    """Called after every step; `accuracy` is the last held-out accuracy, None before the first."""

    def __call__(self, epoch: int, curves: Curves) -> None: ...


@dataclass(frozen=True)
class Evaluation:
    """The model's answers on held-out data: a row of class probabilities per sample."""

    accuracy: float
    predicted: list[int]
    labels: list[int]
    confidence: list[float]

    @property
    def mistakes(self) -> list[int]:
        """Positions of wrong answers, the most confident first."""
        wrong = [
            i for i, (p, t) in enumerate(zip(self.predicted, self.labels, strict=True)) if p != t
        ]
        return sorted(wrong, key=lambda i: -self.confidence[i])


Step = Callable[[Tensor, Tensor], Tensor]


def make_step(model: nn.Module, optimizer: optim.Optimizer) -> Step:
    """One step of training, from a batch to its loss."""

    def step(images: Tensor, labels: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def train(
    model: nn.Module,
    training: Digits,
    held_out: Digits,
    recipe: Recipe,
    watch: Watcher,
    device: Device,
    ranks: Ranks | None = None,
) -> Curves:
    """Trains `model`, which is on `device`, with AdamW; the rate follows half a cosine down to 0.

    With `ranks` each process takes its share of a batch, and gradients are averaged.

    One thread for matrix products: these are so small that more of them only wait for each other,
    on a busy machine for most of the time.
    """
    data = TensorDataset(*training)
    sampler = None
    if ranks is None:
        generator = plugrad.Generator(device="cpu").manual_seed(recipe.seed)
        loader = DataLoader(data, recipe.batch_size, shuffle=True, generator=generator)
    else:
        loader, sampler = ranks.loader(data, recipe.batch_size, recipe.seed)
    optimizer = optim.AdamW(model.parameters(), lr=recipe.lr)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, recipe.epochs)
    step = make_step(model if ranks is None else ranks.parallel(model), optimizer)
    if recipe.captured and ranks is None:
        step = plugrad.compile(step, device=device)
    held_out = Digits(*(part.to(device) for part in held_out))
    curves = Curves()
    with threadpool_limits(limits=1, user_api="blas"):
        for epoch in range(1, recipe.epochs + 1):
            model.train()
            if sampler is not None:
                sampler.set_epoch(epoch)
            for images, labels in loader:
                started = time.perf_counter()
                loss = step(images.to(device), labels.to(device))
                if ranks is not None:
                    loss = ranks.mean(loss)
                curves.losses.append(float(loss))
                curves.seconds += time.perf_counter() - started
                watch(epoch, curves)
            schedule.step()
            curves.accuracies.append(evaluate(model, held_out).accuracy)
            watch(epoch, curves)
    return curves


def time_steps(
    model: nn.Module, training: Digits, recipe: Recipe, device: Device
) -> tuple[float | None, float]:
    """Median seconds of a step on one batch, captured (None if `device` compiles nothing) and
    eager; `model` stays as it is."""
    trained = copy.deepcopy(model).train()
    eager = make_step(trained, optim.AdamW(trained.parameters(), lr=recipe.lr))
    captured = plugrad.compile(eager, device=device)
    batch = [part[: recipe.batch_size].to(device) for part in training]
    with threadpool_limits(limits=1, user_api="blas"):
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


def evaluate(model: nn.Module, data: Digits) -> Evaluation:
    """The model's answers in evaluation mode."""
    model.eval()
    with plugrad.no_grad():
        probabilities = F.softmax(model(data.images), dim=1)
        predicted = probabilities.argmax(dim=1)
        correct = (predicted == data.labels).to(plugrad.float32).mean()
    return Evaluation(
        accuracy=float(correct),
        predicted=predicted.tolist(),
        labels=data.labels.tolist(),
        confidence=probabilities.amax(dim=1).tolist(),
    )
