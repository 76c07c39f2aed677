"""Checkpoints with a reentrant pass: backward runs the function again, then its own backward."""

from __future__ import annotations

# Interpreted: what it calls takes much longer.
from collections.abc import Iterable
from typing import Any

from plugrad.autograd.checkpoint.random_states import RandomState
from plugrad.autograd.engine.callbacks import is_checkpoint_valid
from plugrad.autograd.function import Function
from plugrad.autograd.grad_mode import enable_grad, no_grad
from plugrad.autograd.run_backward import backward
from plugrad.autograd.variable.properties import grad_of
from plugrad.dispatch.autocast import AutocastAsBefore
from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.local_state import current_state
from plugrad.tensor.base import TensorBase, needs_grad
from plugrad.tensor.calls.annotations import explains


@explains
def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same, with tensors detached; what required grad does so as a leaf.

    Args:
        inputs: tensors and other values.

    Raises:
        RuntimeError: `inputs` is not a tuple.

    >>> import plugrad
    >>> x = plugrad.ones(1, requires_grad=True) * 2
    >>> (y,) = plugrad.utils.checkpoint.detach_variable((x,))
    >>> y.requires_grad, y.is_leaf
    (True, True)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    found: list[Any] = []
    for value in inputs:
        if isinstance(value, TensorBase):
            tensor: Any = value
            made = tensor.detach()
            made.requires_grad = tensor.requires_grad
            found.append(made)
        else:
            found.append(value)
    return tuple(found)


@explains
def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no tensor among `inputs` requires grad.

    Args:
        inputs: any objects; only tensors are checked.

    >>> import plugrad
    >>> plugrad.utils.checkpoint.check_backward_validity([plugrad.ones(1, requires_grad=True)])
    """
    tensors: list[Any] = [value for value in inputs if isinstance(value, TensorBase)]
    if not any(tensor.requires_grad for tensor in tensors):
        warn_at_caller(
            "None of the inputs have requires_grad=True. Gradients will be None",
        )


class CheckpointFunction(Function):
    """Runs a function unrecorded; its backward runs it recorded, and backward through that.

    >>> import plugrad
    >>> x = plugrad.ones(2, requires_grad=True)
    >>> y = plugrad.utils.checkpoint.CheckpointFunction.apply(plugrad.exp, True, x)
    >>> y.sum().backward()
    >>> plugrad.equal(x.grad, x.exp())
    True
    """

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.random_state = RandomState(preserve_rng_state, args)
        ctx.autocast = current_state().autocast
        ctx.inputs = [None if isinstance(value, TensorBase) else value for value in args]
        ctx.tensor_indices = [
            index for index, value in enumerate(args) if isinstance(value, TensorBase)
        ]
        ctx.save_for_backward(*[args[index] for index in ctx.tensor_indices])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        if not is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, plugrad.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument."
            )
        inputs = list(ctx.inputs)
        for index, tensor in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            inputs[index] = tensor
        detached = detach_variable(tuple(inputs))
        with ctx.random_state, AutocastAsBefore(ctx.autocast), enable_grad():
            outputs = ctx.run_function(*detached)
        if not isinstance(outputs, (tuple, list)):
            outputs = (outputs,)
        roots: list[Any] = []
        grads: list[Any] = []
        for output, grad in zip(outputs, grad_outputs, strict=False):
            if isinstance(output, TensorBase) and needs_grad(output):
                roots.append(output)
                grads.append(grad)
        if not roots:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward(roots, grads)
        return (
            None,
            None,
            *[grad_of(value) if isinstance(value, TensorBase) else None for value in detached],
        )
