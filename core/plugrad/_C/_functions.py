"""Nodes that PyTorch keeps in `torch._C._functions`: those for tests of autograd itself."""

from __future__ import annotations

# Interpreted: its Functions are Python classes.
from typing import Any

from plugrad._tensor.classes import AccumulateGrad
from plugrad.autograd.function import Function
from plugrad.autograd.graph import Node

__all__ = ["AccumulateGrad", "DelayedError", "UndefinedGrad"]


class DelayedError:
    """Passes tensors through; their gradients raise a RuntimeError with the message.

    >>> import plugrad
    >>> x = plugrad.ones(1, requires_grad=True)
    >>> plugrad._C._functions.DelayedError("too late", 1)(x).backward()
    Traceback (most recent call last):
    RuntimeError: too late
    """

    def __init__(self, msg: str, num_inputs: int) -> None:
        self.msg = msg
        self.num_inputs = num_inputs

    def __call__(self, *tensors: Any) -> Any:
        outputs = _Failing.apply(self.msg, *tensors)
        return outputs[0] if len(outputs) == 1 else outputs


class _Failing(Function):
    @staticmethod
    def forward(ctx: Any, message: str, *tensors: Any) -> Any:
        ctx.message = message
        return tuple(tensor.detach() for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError(ctx.message)


class UndefinedGrad:
    """Passes tensors through; their gradients are lost: undefined, which means zero."""

    def __call__(self, *tensors: Any) -> Any:
        outputs = _Losing.apply(*tensors)
        return outputs[0] if len(outputs) == 1 else outputs


class _Losing(Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        return tuple(tensor.clone() for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None,) * len(grads)


# As in PyTorch, the function that makes nodes counts as one of them.
Node.register(DelayedError)
Node.register(UndefinedGrad)
