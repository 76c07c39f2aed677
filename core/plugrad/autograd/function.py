"""`autograd.Function`: operations with a gradient of their own making."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

from plugrad.autograd.function_node import FunctionNode, apply_function
from plugrad.autograd.grad_mode import is_grad_enabled, no_grad
from plugrad.tensor.base import TensorBase, needs_grad


class BackwardCFunction(FunctionNode):
    """Base of the node classes that each Function gets; interpreted: `ctx.x = ...` works."""


class Function:
    """Base class of operations whose gradient is given by hand.

    Subclass it with static methods `forward(ctx, *args)` and `backward(ctx, *grad_outputs)`, and
    call `apply`. Instead of using `ctx` in `forward`, one may define `forward(*args)` and
    `setup_context(ctx, inputs, output)`.

    `backward` gets one gradient per output and returns one per argument of `forward`, None where
    there is none to give.

    >>> import plugrad
    >>> class Exp(plugrad.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, i):
    ...         result = i.exp()
    ...         ctx.save_for_backward(result)
    ...         return result
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         result, = ctx.saved_tensors
    ...         return grad_output * result
    >>> Exp.apply(plugrad.tensor(0.5, requires_grad=True))
    tensor(1.6487, grad_fn=<ExpBackward>)
    """

    _backward_cls: ClassVar[type[BackwardCFunction]] = BackwardCFunction
    _uses_setup_context: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._backward_cls = type(cls.__name__ + "Backward", (BackwardCFunction,), {})
        cls._uses_setup_context = cls.setup_context is not Function.setup_context

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The operation itself; to be overridden."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fill `ctx` from inputs and outputs, if `forward` does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the arguments from those of the outputs; to be overridden."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run `forward` and record `backward`."""
        return apply_function(cls, cls._backward_cls(cls), args)


class _Refuse(Function):
    """The identity; its gradient is an error."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        return tuple(tensor.detach() for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a `backward` whose own computation cannot be differentiated.

    It runs unrecorded, and differentiating its results raises instead of giving wrong gradients.
    """

    @functools.wraps(backward)
    def with_refusal(ctx: Any, *grad_outputs: Any) -> Any:
        with no_grad():
            result = backward(ctx, *grad_outputs)
        if not is_grad_enabled() or not any(
            isinstance(grad, TensorBase) and needs_grad(grad) for grad in grad_outputs
        ):
            return result
        grads = result if isinstance(result, tuple) else (result,)
        tensors = [grad.detach().requires_grad_() for grad in grads if grad is not None]
        refusing = iter(_Refuse.apply(*tensors))
        return tuple(None if grad is None else next(refusing) for grad in grads)

    return with_refusal
