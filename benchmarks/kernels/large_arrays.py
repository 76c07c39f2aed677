"""Large arrays on one and two threads: elementwise work, reductions, softmax, layer_norm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.libraries import Array, Library, libraries
from benchmarks.measure import TORCH, Budget, Effort, Row, interleave, power

ELEMENTS = (10**4, 10**5, 10**6, 10**7)
SMOKE_ELEMENTS = (10**4,)
THREADS = (1, 2)
# Seconds. OpenMP's threads, which PyTorch uses, spin for some milliseconds after each call.
PAUSE = 0.01
# The length of rows, for operators on rows.
WIDTH = 1000

# The arguments of a call: the library, and two of its tensors of rows.
Call = Callable[[Any, Any, Any], Any]

FORWARD: Mapping[str, Call] = {
    "add": lambda m, x, y: x + y,
    "relu": lambda m, x, y: x.relu(),
    "log": lambda m, x, y: x.log(),
    "gelu": lambda m, x, y: m.nn.functional.gelu(x),
    "tanh": lambda m, x, y: x.tanh(),
    "sum": lambda m, x, y: x.sum(),
    "sum over columns": lambda m, x, y: x.sum(0),
    "softmax": lambda m, x, y: x.softmax(1),
    "layer_norm": lambda m, x, y: m.nn.functional.layer_norm(x, (WIDTH,)),
}
BACKWARD = ("gelu", "tanh", "softmax", "layer_norm")


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Both libraries use this number of threads."""
    modules = [library.module for library in libraries()]
    before = [module.get_num_threads() for module in modules]
    for module in modules:
        module.set_num_threads(count)
    try:
        yield
    finally:
        for module, former in zip(modules, before, strict=True):
            module.set_num_threads(former)


def forward(library: Library, call: Call, arrays: Sequence[Array]) -> Callable[[], object]:
    x, y, _ = (library.reading(array) for array in arrays)
    return lambda: call(library.module, x, y)


def backward(library: Library, call: Call, arrays: Sequence[Array]) -> Callable[[], object]:
    """The gradient alone, for a result that was computed before."""
    x, y, seed = (library.reading(array) for array in arrays)
    result = call(library.module, x.requires_grad_(), y)

    def step() -> None:
        result.backward(seed, retain_graph=True)
        x.grad = None

    return step


def numbers(size: int) -> Array:
    generator = np.random.default_rng(0)
    return generator.random((size // WIDTH, WIDTH), dtype=np.float32) + np.float32(0.01)


def run(effort: Effort) -> list[Row]:
    effort = Effort(effort.smoke, 0.3)
    made = [("forward", forward, name) for name in FORWARD]
    made += [("backward", backward, name) for name in BACKWARD]
    rows: list[Row] = []
    for size in SMOKE_ELEMENTS if effort.smoke else ELEMENTS:
        arrays = [numbers(size) for _ in range(3)]
        for what, make, name in made:
            contestants = {lib.name: make(lib, FORWARD[name], arrays) for lib in libraries()}
            for count in THREADS:
                plural = "" if count == 1 else "s"
                case = f"{name}, {what}, {power(size)} elements, {count} thread{plural}"
                with threads(count):
                    found = interleave(contestants, effort, pause=PAUSE if count > 1 else 0.0)
                rows.append(Row("large_arrays", case, "us per call", found, Budget(1.0, TORCH)))
    return rows
