"""bfloat16 on one and two threads: casts, products, elementwise work, rows, a step in autocast."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.kernels.large_arrays import PAUSE, THREADS, threads
from benchmarks.libraries import Array, Library, libraries
from benchmarks.measure import TORCH, Budget, Effort, Row, interleave

SIDE, ROWS = 1024, 100
SMOKE_SIDE, SMOKE_ROWS = 8, 4

# The arguments of a call: the library, matrices in float32 and in bfloat16, rows in bfloat16.
Call = Callable[[Any, Any, Any, Any], Any]

CALLS: Mapping[str, Call] = {
    "cast to bfloat16": lambda m, wide, x, rows: wide.bfloat16(),
    "cast to float32": lambda m, wide, x, rows: x.float(),
    "matmul": lambda m, wide, x, rows: x @ x,
    "linear": lambda m, wide, x, rows: m.nn.functional.linear(rows, x),
    "add": lambda m, wide, x, rows: x + x,
    "relu": lambda m, wide, x, rows: x.relu(),
    "sum": lambda m, wide, x, rows: x.sum(),
    "gelu, rows": lambda m, wide, x, rows: m.nn.functional.gelu(rows),
    "softmax, rows": lambda m, wide, x, rows: rows.softmax(1),
    "layer_norm, rows": lambda m, wide, x, rows: m.nn.functional.layer_norm(rows, rows.shape[1:]),
}


def forward(library: Library, call: Call, arrays: Sequence[Array]) -> Callable[[], object]:
    wide, rows = (library.constant(array) for array in arrays)
    x, rows = wide.bfloat16(), rows.bfloat16()
    return lambda: call(library.module, wide, x, rows)


def autocast_step(library: Library, arrays: Sequence[Array]) -> Callable[[], object]:
    """Two layers in float32, computed in bfloat16: forward and backward."""
    m = library.module
    wide, rows = (library.constant(array) for array in arrays)
    first, second = wide.clone().requires_grad_(), wide.clone().requires_grad_()

    def step() -> None:
        with m.autocast("cpu", dtype=m.bfloat16):
            hidden = m.nn.functional.gelu(m.nn.functional.linear(rows, first))
            m.nn.functional.linear(hidden, second).float().sum().backward()
        first.grad = second.grad = None

    return step


def run(effort: Effort) -> list[Row]:
    side, count = (SMOKE_SIDE, SMOKE_ROWS) if effort.smoke else (SIDE, ROWS)
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal((n, side), dtype=np.float32) for n in (side, count)]
    makers: dict[str, Callable[[Library], Callable[[], object]]] = {
        name: partial(forward, call=call, arrays=arrays) for name, call in CALLS.items()
    }
    makers["two layers in autocast, forward + backward"] = partial(autocast_step, arrays=arrays)
    rows: list[Row] = []
    for name, make in makers.items():
        contestants = {library.name: make(library) for library in libraries()}
        for used in THREADS:
            case = f"bfloat16: {name}, {used} thread{'' if used == 1 else 's'}"
            with threads(used):
                found = interleave(contestants, effort, pause=PAUSE if used > 1 else 0.0)
            rows.append(Row("bfloat16", case, "us per call", found, Budget(1.0, TORCH)))
    return rows
