"""`torch.optim.optimizer`: what other packages' optimizers import from it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import plugrad
from plugrad import Tensor

__all__ = [
    "ParamsT",
    "_stack_if_compiling",
    "_use_grad_for_differentiable",
    "required",
]

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]


class _Required:
    """Marks an option that has no default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of `step`: gradients are recorded only if the optimizer is differentiable."""

    @functools.wraps(step)
    def stepped(self: Any, *args: Any, **kwargs: Any) -> Any:
        with plugrad.set_grad_enabled(bool(self.defaults.get("differentiable", False))):
            return step(self, *args, **kwargs)

    return stepped


def _stack_if_compiling(x: Any) -> Any:
    """The argument itself, because nothing is compiled."""
    return x
