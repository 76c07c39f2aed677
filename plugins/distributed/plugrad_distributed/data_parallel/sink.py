"""The last node of a model's graph. A backward pass from any output of the model goes through it,
so it reaches all parameters, and the model is notified that the pass began."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plugrad
from plugrad import Tensor

__all__ = ["mapped", "through_sink"]


class _Sink(plugrad.autograd.Function):
    @staticmethod
    def forward(ctx: Any, begun: Callable[[], None], *inputs: Tensor) -> Any:
        # Outputs that the loss does not depend on get no gradients, rather than zeros.
        ctx.set_materialize_grads(False)
        ctx.begun = begun
        return tuple(x.clone() for x in inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        ctx.begun()
        return None, *grads


def through_sink(output: Any, begun: Callable[[], None]) -> Any:
    """An output in which all tensors with a graph are replaced by copies behind one common node.

    Args:
        output: tensors, in lists, tuples and dicts.
        begun: called in backward, before any other node of the model.
    """
    recorded: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        if tensor.grad_fn is not None:
            recorded.append(tensor)
        return tensor

    mapped(output, note)
    if not recorded:
        return output
    copies = dict(zip(map(id, recorded), _Sink.apply(begun, *recorded), strict=True))
    return mapped(output, lambda tensor: copies.get(id(tensor), tensor))


def mapped(value: Any, function: Callable[[Tensor], Any]) -> Any:
    """The same containers, with the results of a function for their tensors."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, dict):
        found = {key: mapped(each, function) for key, each in value.items()}
        if type(value) is dict:
            return found
        copy = value.copy()
        copy.update(found)
        return copy
    if isinstance(value, list | tuple):
        items = [mapped(each, function) for each in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value
