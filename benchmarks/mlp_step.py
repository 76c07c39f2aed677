"""A training step of a multi-layer perceptron: forward, cross entropy, backward, SGD."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.libraries import Array, Library, libraries
from benchmarks.measure import NUMPY, TORCH, Budget, Effort, Row, interleave

LEARNING_RATE = 0.01


@dataclass(frozen=True)
class Problem:
    """Layer widths and one batch."""

    widths: Sequence[int]
    inputs: Array
    labels: NDArray[np.int64]

    @classmethod
    def random(cls, widths: Sequence[int], batch: int) -> Problem:
        generator = np.random.default_rng(0)
        inputs = generator.standard_normal((batch, widths[0]), dtype=np.float32)
        return cls(widths, inputs, generator.integers(0, widths[-1], batch))

    def parameters(self) -> list[tuple[Array, Array]]:
        """A weight (out, in) and a bias (out) for each layer."""
        generator = np.random.default_rng(1)
        made: list[tuple[Array, Array]] = []
        for size, out in zip(self.widths[:-1], self.widths[1:], strict=True):
            weight = generator.standard_normal((out, size), dtype=np.float32) / np.float32(
                size**0.5
            )
            made.append((weight, np.zeros(out, dtype=np.float32)))
        return made


def library_step(library: Library, problem: Problem) -> Callable[[], object]:
    """The step as a user of the library writes it."""
    nn = library.module.nn
    layers: list[object] = []
    for weight, bias in problem.parameters():
        linear = nn.Linear(weight.shape[1], weight.shape[0])
        with library.module.no_grad():
            linear.weight.copy_(library.constant(weight))
            linear.bias.copy_(library.constant(bias))
        layers += [linear, nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    optimizer = library.module.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    inputs = library.constant(problem.inputs)
    labels = library.module.from_numpy(problem.labels)
    cross_entropy = nn.functional.cross_entropy

    def step() -> None:
        optimizer.zero_grad()
        cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return step


def bare_step(problem: Problem) -> Callable[[], object]:
    """The same arithmetic written out in NumPy."""
    parameters = problem.parameters()
    batch = len(problem.labels)
    rows = np.arange(batch)

    def step() -> None:
        activations = [problem.inputs]
        for weight, bias in parameters[:-1]:
            activations.append(np.maximum(activations[-1] @ weight.T + bias, 0))
        weight, bias = parameters[-1]
        logits = activations[-1] @ weight.T + bias
        shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
        gradient = shifted / shifted.sum(axis=1, keepdims=True)
        -np.log(gradient[rows, problem.labels]).mean()
        gradient[rows, problem.labels] -= 1
        gradient /= batch
        for (weight, bias), inputs in zip(reversed(parameters), reversed(activations), strict=True):
            weight_gradient = gradient.T @ inputs
            bias_gradient = gradient.sum(axis=0)
            if inputs is not problem.inputs:
                gradient = (gradient @ weight) * (inputs > 0)
            weight -= LEARNING_RATE * weight_gradient
            bias -= LEARNING_RATE * bias_gradient

    return step


def run(effort: Effort) -> list[Row]:
    rows: list[Row] = []
    for widths, batch in (((4, 8, 8, 2), 8), ((64, 32, 10), 32), ((64, 128, 128, 10), 64)):
        problem = Problem.random(widths, batch)
        contestants = {library.name: library_step(library, problem) for library in libraries()}
        contestants[NUMPY] = bare_step(problem)
        rows.append(
            Row(
                "mlp_step",
                f"{'-'.join(map(str, widths))}, batch {batch}",
                "us per step",
                interleave(contestants, effort),
                Budget(0.7, TORCH),
            )
        )
    return rows
