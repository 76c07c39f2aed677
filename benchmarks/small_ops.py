"""A chain of small operations, where a framework's overhead is the whole cost."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np

from benchmarks.libraries import Array, Library, libraries
from benchmarks.measure import NUMPY, TORCH, Budget, Effort, Row, interleave

OPERATIONS = 1000
FORWARD_OPERATIONS = 100


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


def forward_mode(
    library: Library, start: Array, factor: Array, length: int, dual_factor: bool
) -> Callable[[], object]:
    """The chain on a dual tensor: values and tangents. In PyTorch a product with a tensor without a
    tangent takes a slow path, so there is one with a dual factor, too."""
    fwAD = importlib.import_module(f"{library.module.__name__}.autograd.forward_ad")
    x, b, seed = (library.constant(array) for array in (start, factor, np.ones_like(start)))

    def step() -> None:
        with fwAD.dual_level():
            y = fwAD.make_dual(x, seed)
            by = fwAD.make_dual(b, seed) if dual_factor else b
            for _ in range(length):
                y = y * by
            fwAD.unpack_dual(y)

    return step


def bare_chain(start: Array, factor: Array, length: int) -> Callable[[], object]:
    """The NumPy calls that the chain needs at least."""

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
    short = min(length, FORWARD_OPERATIONS)
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
        *(
            Row(
                "small_ops",
                f"forward mode, {what}",
                "us per operation",
                interleave(
                    {
                        library.name: forward_mode(library, start, factor, short, dual_factor)
                        for library in libraries()
                    },
                    effort,
                    units=short,
                ),
                Budget(1.0, TORCH),
            )
            for what, dual_factor in (("y * b", False), ("y * b with a tangent of b", True))
        ),
    ]
