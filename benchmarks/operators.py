"""Single small operators, forward alone and with backward, where overhead is the cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.libraries import Library, libraries
from benchmarks.measure import PLUGRAD, TORCH, Budget, Effort, Row, Sample, interleave

# The arguments of a call: the library, two tensors of 8 x 16, and one of 16 (a bias or weight).
Call = Callable[[Any, Any, Any, Any], Any]

_COMMON: Mapping[str, Call] = {
    "add": lambda m, x, b, v: x + b,
    "sub": lambda m, x, b, v: x - b,
    "mul": lambda m, x, b, v: x * b,
    "div": lambda m, x, b, v: x / b,
    "mul by a number": lambda m, x, b, v: x * 2.0,
    "add a row": lambda m, x, b, v: x + v,
    "pow": lambda m, x, b, v: x**2,
    "exp": lambda m, x, b, v: x.exp(),
    "log": lambda m, x, b, v: x.log(),
    "sqrt": lambda m, x, b, v: x.sqrt(),
    "tanh": lambda m, x, b, v: x.tanh(),
    "sigmoid": lambda m, x, b, v: x.sigmoid(),
    "relu": lambda m, x, b, v: x.relu(),
    "gelu": lambda m, x, b, v: m.nn.functional.gelu(x),
    "silu": lambda m, x, b, v: m.nn.functional.silu(x),
    "abs": lambda m, x, b, v: x.abs(),
    "neg": lambda m, x, b, v: -x,
    "clamp": lambda m, x, b, v: x.clamp(0.2, 0.8),
    "where": lambda m, x, b, v: m.where(b > 0.5, x, b),
    "maximum": lambda m, x, b, v: m.maximum(x, b),
    "matmul": lambda m, x, b, v: x @ b.mT,
    "linear": lambda m, x, b, v: m.nn.functional.linear(x, b),
    "addmm": lambda m, x, b, v: m.addmm(v, x, _square(m)),
    "bmm": lambda m, x, b, v: m.bmm(x.view(2, 4, 16), b.view(2, 16, 4)),
    "sum": lambda m, x, b, v: x.sum(),
    "sum(dim)": lambda m, x, b, v: x.sum(1),
    "mean": lambda m, x, b, v: x.mean(),
    "mean(dim)": lambda m, x, b, v: x.mean(1),
    "max(dim)": lambda m, x, b, v: x.max(1)[0],
    "softmax": lambda m, x, b, v: x.softmax(1),
    "log_softmax": lambda m, x, b, v: x.log_softmax(1),
    "layer_norm": lambda m, x, b, v: m.nn.functional.layer_norm(x, (16,), v, v),
    "cross_entropy": lambda m, x, b, v: m.nn.functional.cross_entropy(x, _classes(m)),
    "mse_loss": lambda m, x, b, v: m.nn.functional.mse_loss(x, b),
    "view": lambda m, x, b, v: x.view(16, 8),
    "reshape": lambda m, x, b, v: x.reshape(16, 8),
    "transpose": lambda m, x, b, v: x.transpose(0, 1),
    "permute": lambda m, x, b, v: x.permute(1, 0),
    "expand": lambda m, x, b, v: x.unsqueeze(0).expand(3, 8, 16),
    "select": lambda m, x, b, v: x[1],
    "slice": lambda m, x, b, v: x[2:6],
    "chunk": lambda m, x, b, v: x.chunk(2)[0],
    "cat": lambda m, x, b, v: m.cat([x, b]),
    "stack": lambda m, x, b, v: m.stack([x, b]),
    "index_select": lambda m, x, b, v: x.index_select(1, _classes(m)),
    "embedding": lambda m, x, b, v: m.nn.functional.embedding(_classes(m), x),
}

# Operators without a gradient, or that make a tensor.
_ALONE: Mapping[str, Call] = {
    "zeros": lambda m, x, b, v: m.zeros(8, 16),
    "ones_like": lambda m, x, b, v: m.ones_like(x),
    "tensor()": lambda m, x, b, v: m.tensor([1.0, 2.0, 3.0]),
    "arange": lambda m, x, b, v: m.arange(16),
    "item": lambda m, x, b, v: v[0].item(),
    "cast to float64": lambda m, x, b, v: x.double(),
    "clone": lambda m, x, b, v: x.clone(),
    "detach": lambda m, x, b, v: x.detach(),
    "compare": lambda m, x, b, v: x > b,
    "argmax": lambda m, x, b, v: x.argmax(1),
    "add_ in place": lambda m, x, b, v: b.add_(0.0),
}

_constants: dict[tuple[str, str], Any] = {}


def _constant(m: Any, name: str, array: np.ndarray[Any, Any]) -> Any:
    key = (m.__name__, name)
    if key not in _constants:
        _constants[key] = m.from_numpy(array)
    return _constants[key]


def _classes(m: Any) -> Any:
    return _constant(m, "classes", np.arange(8) % 8)


def _square(m: Any) -> Any:
    return _constant(m, "square", np.full((16, 16), 0.1, dtype=np.float32))


def _alone(library: Library, call: Call) -> Callable[[], object]:
    m, x, b, v = _arguments(library, library.constant)
    return lambda: call(m, x, b, v)


def _with_backward(library: Library, call: Call) -> Callable[[], object]:
    m, x, b, v = _arguments(library, library.leaf)
    seed = library.module.ones_like(call(m, x, b, v).detach())

    def step() -> None:
        call(m, x, b, v).backward(seed)
        x.grad = None

    return step


def _arguments(library: Library, first: Callable[[Any], Any]) -> tuple[Any, Any, Any, Any]:
    numbers = np.random.default_rng(0).random((8, 16), dtype=np.float32) + 0.1
    return (
        library.module,
        first(numbers),
        library.constant(numbers[::-1]),
        library.constant(np.full(16, 0.9, dtype=np.float32)),
    )


def _rows(
    what: str,
    limit: float,
    mean_limit: float,
    calls: Mapping[str, Call],
    made: Callable[[Library, Call], Callable[[], object]],
    effort: Effort,
) -> list[Row]:
    effort = Effort(effort.smoke, 0.2)
    rows = [
        Row(
            "operators",
            f"{name}, {what}",
            "us per call",
            interleave({lib.name: made(lib, call) for lib in libraries()}, effort),
            Budget(limit, TORCH),
        )
        for name, call in calls.items()
    ]
    names = rows[0].samples
    mean = {
        name: Sample(
            _geometric([row.samples[name].median for row in rows]),
            _geometric([row.samples[name].minimum for row in rows]),
        )
        for name in (PLUGRAD, TORCH)
        if name in names
    }
    case = f"geometric mean of {len(rows)} operators, {what}"
    return [*rows, Row("operators", case, "us per call", mean, Budget(mean_limit, TORCH))]


def _geometric(values: list[float]) -> float:
    return math.exp(sum(math.log(value) for value in values) / len(values))


def run(effort: Effort) -> list[Row]:
    return [
        *_rows("forward + backward", 0.8, 0.6, _COMMON, _with_backward, effort),
        *_rows("forward alone", 0.9, 0.9, {**_COMMON, **_ALONE}, _alone, effort),
    ]
