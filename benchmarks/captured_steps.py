"""Captured steps: on JAX against the same handwritten step, on the CPU against PyTorch.

On JAX, steps compiled by `plugrad_jax.jit` are compared with steps of JAX and optax. Both are XLA
programs with donated buffers, each with its own library's optimizer. Losses of both are compared
before the measurement.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import tape_steps
from benchmarks.measure import EAGER, JAX, PLUGRAD, Budget, Effort, Row, interleave

Array = NDArray[np.float32]
Step = Callable[[], Any]
# Steps are asynchronous; this many are started before a wait.
STEPS = 20
LIMIT = 1.05
# Rounding differs between two programs, and grows from step to step.
TOLERANCE = 2e-3


@dataclass(frozen=True)
class Case:
    """One model, written twice.

    Attributes:
        name: the name of the row.
        parameters: the initial parameters of both.
        inputs: one batch.
        labels: the classes of the batch.
        optimizer: name of the optimizer in plugrad, its counterpart in optax.
        ours: makes plugrad's model.
        theirs: JAX's function from parameters and inputs to logits.
    """

    name: str
    parameters: list[Array]
    inputs: Array
    labels: NDArray[np.int64]
    optimizer: str
    ours: Callable[[Any], Any]
    theirs: Callable[[list[Any], Any], Any]


def weights(*shapes: tuple[int, ...]) -> list[Array]:
    """Random numbers that preserve the scale of activations; vectors are zero."""
    generator = np.random.default_rng(0)
    made = []
    for shape in shapes:
        fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else 0
        scale = fan_in**-0.5 if fan_in else 0.0
        made.append((generator.standard_normal(shape) * scale).astype(np.float32))
    return made


def batch(*shape: int, classes: int = 10) -> tuple[Array, NDArray[np.int64]]:
    generator = np.random.default_rng(1)
    inputs = generator.standard_normal(shape).astype(np.float32)
    return inputs, generator.integers(0, classes, shape[0])


# The multi-layer perceptron.


def mlp(optimizer: str) -> Case:
    widths = (64, 256, 256, 10)
    shapes: list[tuple[int, ...]] = []
    for size, out in pairwise(widths):
        shapes += [(out, size), (out,)]

    def ours(plugrad: Any) -> Any:
        nn = plugrad.nn
        layers: list[Any] = []
        for size, out in pairwise(widths):
            layers += [nn.Linear(size, out), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def theirs(parameters: list[Any], x: Any) -> Any:
        jax = importlib.import_module("jax")
        for number in range(0, len(parameters), 2):
            x = x @ parameters[number].T + parameters[number + 1]
            if number + 2 < len(parameters):
                x = jax.nn.relu(x)
        return x

    name = f"MLP {'-'.join(map(str, widths))}, batch 128, {optimizer}"
    return Case(name, weights(*shapes), *batch(128, widths[0]), optimizer, ours, theirs)


# The convolutional network.


def cnn(optimizer: str) -> Case:
    def ours(plugrad: Any) -> Any:
        nn = plugrad.nn
        return nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(256, 10),
        )

    def theirs(parameters: list[Any], x: Any) -> Any:
        jax = importlib.import_module("jax")
        for number in (0, 2):
            kernel, bias = parameters[number : number + 2]
            x = jax.lax.conv_general_dilated(x, kernel, (1, 1), ((1, 1), (1, 1)))
            x = jax.nn.relu(x + bias[:, None, None])
            window = (1, 1, 2, 2)
            x = jax.lax.reduce_window(x, -np.inf, jax.lax.max, window, window, "VALID")
        return x.reshape(x.shape[0], -1) @ parameters[4].T + parameters[5]

    shapes = ((8, 1, 3, 3), (8,), (16, 8, 3, 3), (16,), (10, 256), (10,))
    name = f"CNN, two convolutions, batch 32 of 16 x 16, {optimizer}"
    return Case(name, weights(*shapes), *batch(32, 1, 16, 16), optimizer, ours, theirs)


# The transformer block.

HEADS = 4
WIDTH = 64
LENGTH = 32


def transformer(optimizer: str) -> Case:
    def ours(plugrad: Any) -> Any:
        nn = plugrad.nn

        class Block(nn.Module):  # type: ignore[misc, name-defined]  # known only at run time
            def __init__(self) -> None:
                super().__init__()
                self.norm1 = nn.LayerNorm(WIDTH)
                self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
                self.out = nn.Linear(WIDTH, WIDTH)
                self.norm2 = nn.LayerNorm(WIDTH)
                self.up = nn.Linear(WIDTH, 4 * WIDTH)
                self.down = nn.Linear(4 * WIDTH, WIDTH)
                self.head = nn.Linear(WIDTH, 10)

            def forward(self, x: Any) -> Any:
                count, length, width = x.shape
                qkv = self.qkv(self.norm1(x)).reshape(count, length, 3, HEADS, width // HEADS)
                q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
                scores = (q @ k.transpose(-2, -1)) * (width // HEADS) ** -0.5
                mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(count, length, width)
                x = x + self.out(mixed)
                x = x + self.down(nn.functional.relu(self.up(self.norm2(x))))
                return self.head(x.mean(1))

        return Block()

    def theirs(parameters: list[Any], x: Any) -> Any:
        jax = importlib.import_module("jax")
        numpy = jax.numpy
        w1, b1, qkv_w, qkv_b, out_w, out_b, w2, b2, up_w, up_b, down_w, down_b, head_w, head_b = (
            parameters
        )

        def norm(x: Any, weight: Any, bias: Any) -> Any:
            centred = x - x.mean(-1, keepdims=True)
            variance = numpy.square(centred).mean(-1, keepdims=True)
            return centred * jax.lax.rsqrt(variance + 1e-5) * weight + bias

        count, length, width = x.shape
        qkv = norm(x, w1, b1) @ qkv_w.T + qkv_b
        q, k, v = qkv.reshape(count, length, 3, HEADS, width // HEADS).transpose(2, 0, 3, 1, 4)
        scores = (q @ k.swapaxes(-2, -1)) * (width // HEADS) ** -0.5
        mixed = (jax.nn.softmax(scores) @ v).swapaxes(1, 2).reshape(count, length, width)
        x = x + mixed @ out_w.T + out_b
        x = x + jax.nn.relu(norm(x, w2, b2) @ up_w.T + up_b) @ down_w.T + down_b
        return x.mean(1) @ head_w.T + head_b

    found = weights(
        *((WIDTH,), (WIDTH,), (3 * WIDTH, WIDTH), (3 * WIDTH,), (WIDTH, WIDTH), (WIDTH,)),
        *((WIDTH,), (WIDTH,), (4 * WIDTH, WIDTH), (4 * WIDTH,), (WIDTH, 4 * WIDTH), (WIDTH,)),
        *((10, WIDTH), (10,)),
    )
    found[0] += 1
    found[6] += 1
    name = f"transformer block of width {WIDTH}, batch 8 of length {LENGTH}, {optimizer}"
    return Case(name, found, *batch(8, LENGTH, WIDTH), optimizer, ours, theirs)


# Steps

RATES = {"sgd": 0.01, "adam": 1e-3}


def our_step(case: Case, capture: bool) -> Step:
    """A training step as a user of plugrad writes it, captured or eager."""
    plugrad = importlib.import_module("plugrad")
    model = case.ours(plugrad).to("jax")
    with plugrad.no_grad():
        for parameter, value in zip(model.parameters(), case.parameters, strict=True):
            parameter.copy_(plugrad.from_numpy(value))
    if case.optimizer == "sgd":
        optimizer = plugrad.optim.SGD(model.parameters(), lr=RATES["sgd"], momentum=0.9)
    else:
        optimizer = plugrad.optim.Adam(model.parameters(), lr=RATES["adam"])
    inputs = plugrad.from_numpy(case.inputs).to("jax")
    labels = plugrad.from_numpy(case.labels).to("jax")

    def train(inputs: Any, labels: Any) -> Any:
        loss = plugrad.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    run = importlib.import_module("plugrad_jax").jit(train) if capture else train
    return lambda: run(inputs, labels)


def their_step(case: Case) -> Step:
    """The same step, handwritten: value_and_grad and optax, compiled together, with donated
    buffers."""
    jax = importlib.import_module("jax")
    optax = importlib.import_module("optax")
    numpy = jax.numpy
    rule = optax.sgd(RATES["sgd"], momentum=0.9) if case.optimizer == "sgd" else None
    rule = rule or optax.adam(RATES["adam"])

    def loss_of(parameters: list[Any], inputs: Any, labels: Any) -> Any:
        logits = case.theirs(parameters, inputs)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def train(parameters: list[Any], state: Any, inputs: Any, labels: Any) -> Any:
        loss, gradients = jax.value_and_grad(loss_of)(parameters, inputs, labels)
        updates, state = rule.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss

    parameters = [numpy.array(value) for value in case.parameters]
    held = [parameters, rule.init(parameters)]
    inputs, labels = numpy.asarray(case.inputs), numpy.asarray(case.labels.astype(np.int32))

    def step() -> Any:
        held[0], held[1], loss = train(held[0], held[1], inputs, labels)
        return loss

    return step


def check_losses(case: Case, ours: Step, theirs: Step) -> None:
    """Check that both compute the same losses."""
    found = [(float(ours()), float(theirs())) for _ in range(5)]
    for own, other in found:
        if abs(own - other) > TOLERANCE * max(1.0, abs(other)):
            raise AssertionError(f"{case.name}: losses differ: {found}")


def several(step: Step, count: int) -> Callable[[], object]:
    """Run this many steps, and wait for the last one."""

    def run() -> object:
        for _ in range(count - 1):
            step()
        return float(step())

    return run


def run(effort: Effort) -> list[Row]:
    return [*tape_steps.rows(effort), *rows_on_jax(effort)]


def rows_on_jax(effort: Effort) -> list[Row]:
    if not all(importlib.util.find_spec(name) for name in ("jax", "optax", "plugrad_jax")):
        return []
    rows: list[Row] = []
    for case in (mlp("sgd"), mlp("adam"), cnn("sgd"), transformer("adam")):
        ours, theirs = our_step(case, True), their_step(case)
        check_losses(case, ours, theirs)
        count = 2 if effort.smoke else STEPS
        contestants = {PLUGRAD: several(ours, count), JAX: several(theirs, count)}
        samples = interleave(contestants, effort, units=count)
        eager = interleave({EAGER: several(our_step(case, False), 1)}, Effort(True))
        rows.append(
            Row(
                "captured_steps",
                case.name,
                "us per step",
                {**samples, **eager},
                Budget(LIMIT, JAX),
            )
        )
    return rows
