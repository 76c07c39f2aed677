"""Random functions, and random nestings of transforms around them, for plugrad and PyTorch alike.

A description is a tuple of names and numbers, so that both libraries build the same function of it.
Functions take a vector and give a vector of the same length.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from hypothesis import strategies as st

Function = Callable[[Any], Any]

# Each takes the library and a vector.
PARTS: dict[str, Callable[[Any, Any], Any]] = {
    "sin": lambda lib, x: lib.sin(x),
    "tanh": lambda lib, x: lib.tanh(x),
    "exp": lambda lib, x: lib.exp(-x * x),
    "square": lambda lib, x: x * x,
    "times sum": lambda lib, x: x * x.sum(),
    "roll": lambda lib, x: lib.cat([x[1:], x[:1]]) * x,
    "outer": lambda lib, x: lib.outer(x, lib.cos(x)).sum(0),
    "matmul": lambda lib, x: lib.stack([x, x + 1, x * x]).T @ lib.tanh(x[:3]),
    "softmax": lambda lib, x: lib.softmax(x, 0),
    "where": lambda lib, x: lib.where(x > 0.3, x * x, lib.sin(x)),
    "norm": lambda lib, x: x / (1 + (x * x).sum()) ** 0.5,
    "max": lambda lib, x: x * x.max(),
    "cumsum": lambda lib, x: lib.cumsum(x, 0),
    "index": lambda lib, x: x[[2, 0, 1]] * x,
    "write": lambda lib, x: _write(x),
    "flip": lambda lib, x: x.flip(0) * lib.exp(x * 0.5),
}


def _write(x: Any) -> Any:
    y = x.clone()
    y[1:].mul_(x[:-1])
    return y


def _vjp(lib: Any, f: Function) -> Function:
    def transformed(x: Any) -> Any:
        outputs, pull_back = lib.func.vjp(f, x)
        return pull_back(lib.cos(outputs))[0]

    return transformed


# Each makes a function of a function, and takes the library.
TRANSFORMS: dict[str, Callable[[Any, Function], Function]] = {
    "grad": lambda lib, f: lambda x: lib.func.grad(lambda y: f(y).sum())(x),
    "vjp": _vjp,
    "jvp": lambda lib, f: lambda x: lib.func.jvp(f, (x,), (lib.cos(x),))[1],
    "vmap": lambda lib, f: lambda x: lib.func.vmap(f)(lib.stack([x, lib.sin(x)])).sum(0),
    "vmap over a factor": lambda lib, f: (
        lambda x: lib.func.vmap(lambda s: f(x * s), out_dims=1)(x[:2]).sum(1)
    ),
    "captured": lambda lib, f: lambda x: lib.func.grad(lambda y: (f(y) * x).sum())(x * 0.5),
}


def build(lib: ModuleType, parts: tuple[str, ...], transforms: tuple[str, ...]) -> Function:
    """The function of a description, in one library."""

    def function(x: Any) -> Any:
        for name in parts:
            x = PARTS[name](lib, x)
        return x

    made: Function = function
    for name in transforms:
        made = TRANSFORMS[name](lib, made)
    return made


def descriptions(depth: int) -> st.SearchStrategy[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Parts of a function, and transforms around it, the innermost first."""
    parts = st.lists(st.sampled_from(sorted(PARTS)), min_size=1, max_size=3).map(tuple)
    around = st.lists(st.sampled_from(sorted(TRANSFORMS)), min_size=1, max_size=depth).map(tuple)
    return st.tuples(parts, around)
