"""Parts of graphs with a backward pass that runs a test's code on a chosen device."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import plugrad

SECONDS = 60.0  # for which a test waits for another thread before it fails


def leaf(device: str, *values: float) -> Any:
    return plugrad.tensor(
        list(values) or [1.0, 2.0], dtype=plugrad.float64, device=device, requires_grad=True
    )


class Then(plugrad.autograd.Function):
    """The identity; its backward calls `function(grad)`, and a result replaces the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any, function: Callable[[Any], Any]) -> Any:
        ctx.function = function
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        result = ctx.function(grads[0])
        return (grads[0] if result is None else result), None


def then(x: Any, function: Callable[[Any], Any]) -> Any:
    """`x`; its gradient passes through `function`."""
    return Then.apply(x, function)


class Notes:
    """What happened in backward, in order: `(name, thread's name)`."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str]] = []

    def note(self, name: str) -> None:
        self.all.append((name, threading.current_thread().name))

    def on(self, x: Any, name: str) -> Any:
        """`x`; the node notes when and where it runs."""

        def noting(grad: Any) -> None:
            self.note(name)

        return then(x, noting)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.all]

    @property
    def threads(self) -> dict[str, str]:
        return dict(self.all)


def device_threads() -> list[str]:
    """The names of the engine's threads that are alive."""
    return sorted(t.name for t in threading.enumerate() if t.name.startswith("plugrad-"))
