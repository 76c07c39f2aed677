"""Convolutions of 3x3 on one and two threads: forward, and all gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.kernels.large_arrays import PAUSE, THREADS, threads
from benchmarks.libraries import Array, Library, libraries
from benchmarks.measure import TORCH, Budget, Effort, Row, interleave

# Batch, channels, height and width, filters.
LAYERS = ((32, 16, 32, 32), (32, 64, 16, 64))
SMOKE_LAYERS = ((1, 2, 8, 4),)


def forward(library: Library, arrays: Sequence[Array]) -> Callable[[], object]:
    x, weight, bias, _ = (library.constant(array) for array in arrays)
    return lambda: library.module.nn.functional.conv2d(x, weight, bias, padding=1)


def backward(library: Library, arrays: Sequence[Array]) -> Callable[[], object]:
    """The gradients alone, of a result that was computed before."""
    *inputs, grad = (library.constant(array) for array in arrays)
    for tensor in inputs:
        tensor.requires_grad_()
    result = library.module.nn.functional.conv2d(*inputs, padding=1)

    def step() -> None:
        result.backward(grad, retain_graph=True)
        for tensor in inputs:
            tensor.grad = None

    return step


def run(effort: Effort) -> list[Row]:
    rows: list[Row] = []
    generator = np.random.default_rng(0)
    for batch, channels, side, filters in SMOKE_LAYERS if effort.smoke else LAYERS:
        shapes = (
            *((batch, channels, side, side), (filters, channels, 3, 3), (filters,)),
            (batch, filters, side, side),
        )
        arrays = [generator.standard_normal(shape, dtype=np.float32) for shape in shapes]
        for what, make in (("forward", forward), ("gradients", backward)):
            contestants = {lib.name: make(lib, arrays) for lib in libraries()}
            for count in THREADS:
                plural = "" if count == 1 else "s"
                case = (
                    f"{channels} to {filters} channels, {batch} of {side}x{side}, {what}, "
                    f"{count} thread{plural}"
                )
                with threads(count):
                    found = interleave(contestants, effort, pause=PAUSE if count > 1 else 0.0)
                rows.append(Row("convolutions", case, "us per call", found, Budget(1.0, TORCH)))
    return rows
