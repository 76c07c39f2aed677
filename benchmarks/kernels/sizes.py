"""Single operations over array sizes: where kernels become more expensive than overhead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.libraries import Array, Library, libraries
from benchmarks.measure import NUMPY, TORCH, Budget, Effort, Row, interleave, power

ELEMENTS = (10**2, 10**3, 10**4, 10**5, 10**6, 10**7)
SMOKE_ELEMENTS = (10**2, 10**4)
# Below this number of elements, overhead dominates.
BUDGET_FROM = 10**4

# Called with the library's module and two of its arrays.
Operation = Callable[[Any, Any, Any], object]

VECTORS: dict[str, Operation] = {
    "x * y": lambda module, x, y: x * y,
    "exp(x)": lambda module, x, y: module.exp(x),
    "sum(x)": lambda module, x, y: x.sum(),
    "mean of 10 rows": lambda module, x, y: x.reshape(10, -1).mean(1),
}
MATRICES: dict[str, Operation] = {"x @ y": lambda module, x, y: x @ y}


def call(operation: Operation, module: Any, x: Any, y: Any) -> Callable[[], object]:
    return lambda: operation(module, x, y)


def gradient_call(library: Library, array: Array) -> Callable[[], object]:
    """Forward and backward of `(x * x).sum()`."""
    x = library.leaf(array)

    def step() -> None:
        (x * x).sum().backward()
        x.grad = None

    return step


def bare_gradient(array: Array) -> Callable[[], object]:
    def step() -> None:
        (array * array).sum()
        gradient = np.ones_like(array)
        gradient * array + gradient * array

    return step


def measured(
    case: str,
    operation: Operation,
    arrays: tuple[Array, Array],
    effort: Effort,
    budget: Budget | None,
) -> Row:
    """One operation on one pair of arrays, nothing recorded."""
    contestants = {
        library.name: call(operation, library.module, *map(library.constant, arrays))
        for library in libraries()
    }
    contestants[NUMPY] = call(operation, np, *arrays)
    return Row("sizes", case, "us per call", interleave(contestants, effort), budget)


def run(effort: Effort) -> list[Row]:
    generator = np.random.default_rng(0)
    rows: list[Row] = []
    sizes = SMOKE_ELEMENTS if effort.smoke else ELEMENTS
    for name, operation in VECTORS.items():
        for size in sizes:
            x, y = (generator.random(size, dtype=np.float32) for _ in range(2))
            budget = Budget(1.0, TORCH) if size >= BUDGET_FROM else None
            case = f"{name}, {power(size)} elements"
            rows.append(measured(case, operation, (x, y), effort, budget))
    for size in sizes:
        x = generator.random(size, dtype=np.float32)
        contestants = {library.name: gradient_call(library, x) for library in libraries()}
        contestants[NUMPY] = bare_gradient(x)
        case = f"(x * x).sum() and its backward, {power(size)} elements"
        rows.append(Row("sizes", case, "us per call", interleave(contestants, effort)))
    for name, operation in MATRICES.items():
        for size in sizes:
            side = round(size**0.5)
            x, y = (generator.random((side, side), dtype=np.float32) for _ in range(2))
            rows.append(measured(f"{name}, {side}x{side}", operation, (x, y), effort, None))
    return rows
