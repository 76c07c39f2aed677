"""The demo on images: scikit-learn's 1797 handwritten digits, split into training and held-out
ones."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sklearn.datasets import load_digits

import plugrad
from plugrad import Tensor
from plugrad import device as Device
from plugrad_nn import nn
from plugrad_nn.demo import models
from plugrad_nn.demo.processes import Ranks
from plugrad_nn.demo.training import Batch, Recipe
from plugrad_nn.nn import functional as F
from plugrad_nn.utils.data import DataLoader, TensorDataset, random_split

HELD_OUT_SHARE = 0.2
LARGEST_PIXEL = 16.0


class Digits(NamedTuple):
    """Images (N, 1, 8, 8) float32 in [0, 1] and their labels (N) int64."""

    images: Tensor
    labels: Tensor


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


def load(seed: int) -> tuple[Digits, Digits]:
    """Training and held-out digits on the CPU; the same split for the same seed."""
    pixels, labels = load_digits(return_X_y=True)
    with plugrad.device("cpu"):
        images = plugrad.tensor(pixels / LARGEST_PIXEL, dtype=plugrad.float32)
        targets = plugrad.tensor(labels, dtype=plugrad.int64)
    data = TensorDataset(images.reshape(-1, 1, 8, 8), targets)
    generator = plugrad.Generator(device="cpu").manual_seed(seed)
    shares = [1 - HELD_OUT_SHARE, HELD_OUT_SHARE]
    training, held_out = random_split(data, shares, generator=generator)
    return Digits(*data[training.indices]), Digits(*data[held_out.indices])


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


class DigitsTask:
    """Which digit is it? The score is the accuracy."""

    # These products are so small that more threads only wait for each other.
    threads: int | None = 1

    def __init__(self, model: str, seed: int) -> None:
        self.name = f"digits-{model}"
        self.training, self.held_out = load(seed)
        self._make_model = models.MODELS[model]

    def make_model(self) -> nn.Module:
        return self._make_model()

    def steps(self, recipe: Recipe) -> int:
        return math.ceil(len(self.training.labels) / recipe.batch_size)

    def batches(self, recipe: Recipe, epoch: int, ranks: Ranks | None) -> Iterable[Batch]:
        data = TensorDataset(*self.training)
        if ranks is not None:
            loader, sampler = ranks.loader(data, recipe.batch_size, recipe.seed)
            sampler.set_epoch(epoch)
            return loader
        generator = plugrad.Generator(device="cpu").manual_seed(recipe.seed + epoch)
        return DataLoader(data, recipe.batch_size, shuffle=True, generator=generator)

    def loss(self, model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(model(inputs), targets)

    def score(self, model: nn.Module, device: Device) -> float:
        return self.evaluation(model, device).accuracy

    def told(self, score: float) -> str:
        return f"accuracy {100 * score:.1f} %"

    def evaluation(self, model: nn.Module, device: Device) -> Evaluation:
        """The answers on the held-out digits."""
        return evaluate(model, Digits(*(part.to(device) for part in self.held_out)))
