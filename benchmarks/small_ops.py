"""A chain of small operations, where a framework's overhead is the whole cost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.libraries import Array, Library, libraries
from benchmarks.measure import NUMPY, TORCH, Budget, Effort, Row, interleave

OPERATIONS = 1000


def chain(library: Library, start: Array, factor: Array, length: int) -> Callable[[], object]:
    """Forward and backward through `y = y * b`, `length` times."""
    x, b, seed = (
        library.leaf(start),
        library.constant(factor),
        library.constant(np.ones_like(start)),
    )

    def step() -> None:
        y = x
        for _ in range(length):
            y = y * b
        y.backward(seed)
        x.grad = None

    return step


def forward(library: Library, start: Array, factor: Array, length: int) -> Callable[[], object]:
    """The same chain without recording it."""
    x, b = library.constant(start), library.constant(factor)

    def step() -> None:
        y = x
        for _ in range(length):
            y = y * b

    return step


def bare_chain(start: Array, factor: Array, length: int) -> Callable[[], object]:
    """The NumPy calls that the chain cannot do without."""

    def step() -> None:
        y = start
        for _ in range(length):
            y = y * factor
        gradient = np.ones_like(start)
        for _ in range(length):
            gradient = gradient * factor

    return step


def bare_forward(start: Array, factor: Array, length: int) -> Callable[[], object]:
    def step() -> None:
        y = start
        for _ in range(length):
            y = y * factor

    return step


def run(effort: Effort) -> list[Row]:
    length = 20 if effort.smoke else OPERATIONS
    generator = np.random.default_rng(0)
    start = generator.random((4, 4), dtype=np.float32)
    factor = np.full((4, 4), 0.999, dtype=np.float32)
    both = {library.name: chain(library, start, factor, length) for library in libraries()}
    both[NUMPY] = bare_chain(start, factor, length)
    alone = {library.name: forward(library, start, factor, length) for library in libraries()}
    alone[NUMPY] = bare_forward(start, factor, length)
    return [
        Row(
            "small_ops",
            "forward + backward, 4x4 float32",
            "us per operation",
            interleave(both, effort, units=length),
            Budget(0.6, TORCH),
        ),
        Row(
            "small_ops",
            "forward only, nothing recorded",
            "us per operation",
            interleave(alone, effort, units=length),
        ),
    ]
