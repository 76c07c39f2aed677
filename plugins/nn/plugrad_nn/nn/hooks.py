"""Hooks of modules and optimizers: the handles that remove them, and the backward boundary."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

import plugrad
from plugrad import Tensor
from plugrad.autograd.graph import RemovableHandle

Hook = Callable[..., Any]
Gradients = tuple[Tensor | None, ...]

MIXED_HOOKS: Final = (
    "Cannot use both regular backward hooks and full backward hooks on a single Module. "
    "Please use only one of them."
)
MIXED_GLOBAL_HOOKS: Final = MIXED_HOOKS.replace("on a single Module", "as a global Module hook")


def add_hook(
    table: OrderedDict[int, Any],
    hook: object,
    prepend: bool = False,
    options: Sequence[tuple[dict[int, bool], bool]] = (),
) -> RemovableHandle:
    """Puts `hook` at the end of `table` (or in front of all others) and returns its handle.

    Args:
        options: tables of those hooks for which something is so, and whether it is for this one.
    """
    handle = RemovableHandle(table, extra_dict=[options_of for options_of, _ in options])
    table[handle.id] = hook
    for options_of, is_so in options:
        if is_so:
            options_of[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


class BackwardHookFunction(plugrad.autograd.Function):
    """The identity in the forward pass; shows the gradients that come back to `observe`."""

    @staticmethod
    def forward(ctx: Any, observe: Callable[[Gradients], Gradients], *tensors: Tensor) -> Any:
        ctx.observe = observe
        ctx.set_materialize_grads(False)
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        return (None, *ctx.observe(grads))


class BackwardHooks:
    """Runs a module's full backward hooks for one call of the module.

    The tensors that enter and leave the module pass through two boundaries::

        inputs -> [boundary] -> forward -> [boundary] -> outputs
        grad_input <- hooks(module, grad_input, grad_output) <- stores grad_output
    """

    def __init__(self, module: object, hooks: list[Hook], pre_hooks: list[Hook]) -> None:
        self._module = module
        self._hooks = hooks
        self._pre_hooks = pre_hooks
        self._grad_outputs: Gradients | None = None
        self._input_positions: list[int] = []
        self._input_count = 0
        self._input_needs_grad = False

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Passes the tensors among `args` through the boundary in front of the module."""
        self._input_count = len(args)
        self._input_needs_grad = _any_requires_grad(args)
        positions, through = _pass_through(args, self._observe_inputs)
        self._input_positions = positions
        return through

    def leave(self, outputs: Any) -> Any:
        """Passes the tensors of `outputs` through the boundary after the module."""
        several = isinstance(outputs, tuple | list)
        _, through = _pass_through(tuple(outputs) if several else (outputs,), self._observe_outputs)
        return type(outputs)(through) if several else through[0]

    def _observe_outputs(self, grads: Gradients) -> Gradients:
        for pre_hook in self._pre_hooks:
            replaced = pre_hook(self._module, grads)
            if replaced is not None:
                grads = _as_gradients(replaced, len(grads), "backward pre hook")
        self._grad_outputs = grads
        if not self._input_needs_grad:
            nothing: Gradients = (None,) * self._input_count
            for hook in self._hooks:
                if hook(self._module, nothing, grads) is not None:
                    raise RuntimeError(
                        "backward hook for Modules where no input requires gradient "
                        "should always return None or None for all gradients."
                    )
        return grads

    def _observe_inputs(self, grads: Gradients) -> Gradients:
        if self._grad_outputs is None:
            # A second backward pass that reaches the input without passing the output.
            return grads
        by_position: list[Tensor | None] = [None] * self._input_count
        for position, grad in zip(self._input_positions, grads, strict=True):
            by_position[position] = grad
        current: Gradients = tuple(by_position)
        for hook in self._hooks:
            replaced = hook(self._module, current, self._grad_outputs)
            if replaced is not None:
                current = _as_gradients(replaced, self._input_count, "backward hook")
        self._grad_outputs = None
        return tuple(current[position] for position in self._input_positions)


def _any_requires_grad(values: tuple[Any, ...]) -> bool:
    return plugrad.is_grad_enabled() and any(
        isinstance(value, Tensor) and value.requires_grad for value in values
    )


def _pass_through(
    values: tuple[Any, ...], observe: Callable[[Gradients], Gradients]
) -> tuple[list[int], tuple[Any, ...]]:
    positions = [
        position
        for position, value in enumerate(values)
        if isinstance(value, Tensor) and value.requires_grad
    ]
    if not positions or not plugrad.is_grad_enabled():
        return [], values
    through = BackwardHookFunction.apply(observe, *(values[position] for position in positions))
    passed = list(values)
    for position, tensor in zip(positions, through, strict=True):
        passed[position] = tensor
    return positions, tuple(passed)


def _as_gradients(replaced: Any, expected: int, who: str) -> Gradients:
    grads = tuple(replaced) if isinstance(replaced, tuple | list) else (replaced,)
    if len(grads) != expected:
        raise RuntimeError(
            f"{who} returned an incorrect number of gradients: expected {expected}, "
            f"got {len(grads)}"
        )
    return grads
