"""FunctionNode: the graph node of a user's `autograd.Function`, which is also its `ctx`."""

from __future__ import annotations

from typing import Any

from mypy_extensions import mypyc_attr

from plugrad._generated import functions as F
from plugrad.autograd.properties import is_leaf
from plugrad.dispatch.local_state import current_state
from plugrad.graph.history import (
    check_inplace,
    gradient_edge,
    next_sequence_nr,
    rebase_history,
    set_history,
)
from plugrad.graph.node import Edge, Node
from plugrad.graph.saved_variable import SavedVariable, raise_freed
from plugrad.tensor.arguments import type_name
from plugrad.tensor.base import TensorBase, bump_version, detached, needs_grad


@mypyc_attr(allow_interpreted_subclasses=True)
class FunctionNode(Node):
    """What `forward` and `backward` receive as `ctx`.

    Attributes:
        needs_input_grad: for every argument of `apply`, whether its gradient is wanted.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(next_sequence_nr())
        self.function_class: Any = function
        self.needs_input_grad: tuple[bool, ...] = ()
        self.tensor_positions: list[int] = []
        self.argument_count: int = 0
        self.to_save: tuple[Any, ...] = ()
        self.saved: list[SavedVariable | None] = []
        self.non_differentiable: tuple[Any, ...] = ()
        self.dirty: tuple[Any, ...] = ()
        self.materialize_grads: bool = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep inputs or outputs for `backward`, which finds them in `saved_tensors`.

        Raises:
            TypeError: something is neither a Tensor nor None.
        """
        for index, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, TensorBase):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {index} is of type "
                    f"{type_name(tensor)}"
                )
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for `jvp`."""

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say that these outputs carry no gradient."""
        self.non_differentiable = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say that `forward` wrote to these inputs."""
        self.dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros, rather than None, for outputs that nobody used."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept; RuntimeError once the graph was freed."""
        if self.released:
            raise_freed()
        return tuple(None if item is None else item.unpack(self) for item in self.saved)

    def release_variables(self) -> None:
        if self.saved:
            self.released = True
            self.saved = []

    def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:
        given = list(grads)
        if self.materialize_grads:
            for index in range(len(given)):
                if given[index] is None:
                    given[index] = self._zeros(index)
        result: Any = self.function_class.backward(self, *given)
        values: tuple[Any, ...] = result if isinstance(result, tuple) else (result,)
        return self._sort_out(values)

    def _zeros(self, index: int) -> Any:
        metadata = self.input_metadata(index)
        if metadata is None:
            return None
        return F.zeros(metadata.shape, dtype=metadata.dtype, device=metadata.device)

    def _sort_out(self, values: tuple[Any, ...]) -> list[TensorBase | None]:
        """One gradient per tensor argument, from one per argument."""
        count = self.argument_count
        if len(values) > count and all(value is None for value in values[count:]):
            values = values[:count]
        if len(values) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{count}, got {len(values)})"
            )
        found: list[TensorBase | None] = []
        for position, value in enumerate(values):
            if position in self.tensor_positions:
                if value is not None and not isinstance(value, TensorBase):
                    raise RuntimeError(f"expected Variable or None (got {type_name(value)})")
                found.append(value)
            elif value is not None:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position "
                    f"{position + 1}, but the corresponding forward input was not a Variable"
                )
        return found


def apply_function(function: Any, ctx: FunctionNode, args: tuple[Any, ...]) -> Any:
    """Run a Function's forward unrecorded, and tie its outputs to `ctx`."""
    state = current_state()
    ctx.argument_count = len(args)
    ctx.needs_input_grad = tuple(
        [isinstance(value, TensorBase) and needs_grad(value) for value in args]
    )
    ctx.tensor_positions = [
        position for position, value in enumerate(args) if isinstance(value, TensorBase)
    ]
    recorded = state.grad_enabled and any(ctx.needs_input_grad)
    if recorded:
        edges: list[Edge] = []
        for position in ctx.tensor_positions:
            tensor: TensorBase = args[position]
            edges.append(gradient_edge(tensor))
        ctx.set_next_edges(tuple(edges))
    grad_enabled = state.grad_enabled
    state.grad_enabled = False
    try:
        if function._uses_setup_context:
            outputs: Any = function.forward(*args)
            function.setup_context(ctx, args, outputs)
        else:
            outputs = function.forward(ctx, *args)
    finally:
        state.grad_enabled = grad_enabled
    several = isinstance(outputs, (tuple, list))
    raw: tuple[Any, ...] = tuple(outputs) if several else (outputs,)
    wrapped = _tie_outputs(ctx, args, raw, recorded)
    _save(ctx, raw, recorded)
    # An output held here, whose grad_fn is `ctx`, would be a cycle.
    ctx.non_differentiable = ()
    ctx.dirty = ()
    return tuple(wrapped) if several else wrapped[0]


def _contains(tensors: tuple[Any, ...], wanted: object) -> bool:
    return any(tensor is wanted for tensor in tensors)


def _tie_outputs(
    ctx: FunctionNode, args: tuple[Any, ...], outputs: tuple[Any, ...], recorded: bool
) -> list[Any]:
    wrapped: list[Any] = []
    for output in outputs:
        if not isinstance(output, TensorBase):
            wrapped.append(output)
            continue
        is_input = _contains(args, output)
        if _contains(ctx.dirty, output):
            if not is_input:
                raise RuntimeError(
                    "mark_dirty: only inputs can be marked as modified, but an output was that is "
                    "no input"
                )
            if recorded and needs_grad(output) and is_leaf(output):
                raise RuntimeError(
                    "a leaf Variable that requires grad has been used in an in-place operation."
                )
            if recorded:
                check_inplace(output)
            bump_version(output)
            if recorded:
                rebase_history(output, ctx)
            wrapped.append(output)
            continue
        differentiable = not _contains(ctx.non_differentiable, output)
        if is_input:
            # Returned as it is: a new tensor carries the new history.
            output = detached(output)
        if recorded:
            if not differentiable or not output.dtype.is_differentiable:
                ctx.add_input_metadata(output)
            else:
                set_history(output, ctx)
        wrapped.append(output)
    return wrapped


def _save(ctx: FunctionNode, outputs: tuple[Any, ...], recorded: bool) -> None:
    """Save after the outputs are tied, so that a saved output is recognised as one."""
    if recorded:
        for tensor in ctx.to_save:
            if tensor is None:
                ctx.saved.append(None)
                continue
            saved: TensorBase = tensor
            meta = saved.meta
            if meta is not None and meta.grad_fn is ctx:
                ctx.saved.append(SavedVariable(saved, meta.output_nr))
            else:
                ctx.saved.append(SavedVariable(saved))
    ctx.to_save = ()
