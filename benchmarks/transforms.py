"""Function transforms: per-sample gradients against a loop, Jacobians against PyTorch's."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.libraries import Library, libraries
from benchmarks.measure import LOOP, PLUGRAD, TORCH, Budget, Effort, Row, interleave

WIDTHS = (64, 128, 10)
BATCH = 256
SIZE = 100


def parameters() -> list[Any]:
    generator = np.random.default_rng(0)
    made: list[Any] = []
    for inside, outside in pairwise(WIDTHS):
        made.append(generator.normal(0, inside**-0.5, (outside, inside)).astype(np.float32))
        made.append(np.zeros(outside, np.float32))
    return made


def per_sample(library: Library) -> tuple[Callable[[], object], Callable[[], object]]:
    """Per-sample gradients of a batch: mapped, and in a loop."""
    module = library.module
    func = importlib.import_module(f"{module.__name__}.func")
    generator = np.random.default_rng(1)
    weights = tuple(library.constant(array) for array in parameters())
    inputs = library.constant(generator.standard_normal((BATCH, WIDTHS[0])).astype(np.float32))
    targets = library.constant(generator.standard_normal((BATCH, WIDTHS[-1])).astype(np.float32))

    def loss(weights: Any, x: Any, y: Any) -> Any:
        first, first_bias, second, second_bias = weights
        hidden = module.tanh(module.mv(first, x) + first_bias)
        difference = module.mv(second, hidden) + second_bias - y
        return (difference * difference).mean()

    gradient = func.grad(loss)
    mapped = func.vmap(gradient, in_dims=(None, 0, 0))

    def loop() -> object:
        found = [gradient(weights, x, y) for x, y in zip(inputs, targets, strict=True)]
        return [module.stack(parts) for parts in zip(*found, strict=True)]

    return lambda: mapped(weights, inputs, targets), loop


def jacobian(library: Library, function: Callable[[Any, Any, Any], Any]) -> Callable[[], object]:
    """`jacrev` of a function from 100 numbers to 100."""
    module = library.module
    func = importlib.import_module(f"{module.__name__}.func")
    generator = np.random.default_rng(2)
    x = library.constant(generator.standard_normal(SIZE).astype(np.float32))
    matrix = generator.standard_normal((SIZE, SIZE)).astype(np.float32) / 10
    matrix = library.constant(matrix)
    jacrev = func.jacrev(lambda x: function(module, matrix, x))
    return lambda: jacrev(x)


FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "tanh(A x)": lambda module, matrix, x: module.tanh(module.mv(matrix, x)),
    "x sin(x) exp(-x)": lambda module, matrix, x: x * module.sin(x) * module.exp(-x),
}


def run(effort: Effort) -> list[Row]:
    """Rows for the report; comparisons that need PyTorch are left out without it."""
    known = list(libraries())
    contestants: dict[str, Callable[[], object]] = {}
    for library in known:
        mapped, loop = per_sample(library)
        contestants[library.name] = mapped
        if library.name == PLUGRAD:
            contestants[LOOP] = loop
    rows = [
        Row(
            "transforms",
            f"vmap(grad(loss)), MLP {'-'.join(map(str, WIDTHS))}, batch {BATCH}",
            "us",
            interleave(contestants, effort),
            Budget(0.15, LOOP),
        )
    ]
    rows += [
        Row(
            "transforms",
            f"jacrev of {name}, {SIZE} to {SIZE}",
            "us",
            interleave({each.name: jacobian(each, function) for each in known}, effort),
            Budget(1.3, TORCH),
        )
        for name, function in FUNCTIONS.items()
    ]
    return rows
