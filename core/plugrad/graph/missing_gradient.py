"""Nodes without a gradient.

The node of an operator that was defined without a gradient raises in backward. The node of a result
that requires grad only because other results of its call do returns None.
"""

from __future__ import annotations

from typing import Any, final

from mypy_extensions import i64

from plugrad.dispatch import keys
from plugrad.dispatch.kernel_hooks import set_missing_gradient
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import Operator
from plugrad.graph.history import collect_next_edges, next_sequence_nr, set_history
from plugrad.graph.node import Node
from plugrad.graph.support import name_node_class
from plugrad.tensor.base import TensorBase, needs_grad


@final
class NotImplementedNode(Node):
    """Raises when backward arrives at it."""

    def __init__(self, op: Operator) -> None:
        super().__init__(next_sequence_nr())
        self.op = op

    def name(self) -> str:
        return "NotImplemented"

    def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:
        raise RuntimeError(
            f"{self.op.qualified_name}: an autograd kernel was not registered to the Autograd key, "
            "but we are trying to backprop through it. Register one with Library.impl(..., "
            "'Autograd'), give a decomposition (CompositeImplicitAutograd), or call the operator "
            "under no_grad."
        )


@final
class MissingGradientKernel:
    """The Autograd kernel of an operator that has none: computes; there is no way back."""

    def __init__(self, op: Operator) -> None:
        self.op = op

    def __call__(self, keyset: i64, *args: Any) -> Any:
        state = current_state()
        below = keyset & keys.AFTER_AUTOGRAD
        if state.trace is not None:
            out = state.trace.dispatch("redispatch", self.op, below, args)
        else:
            out = self.op.lookup_below(below)(below, *args)
        if state.grad_enabled:
            inputs = [tensor for tensor in _tensors(args) if needs_grad(tensor)]
            if inputs:
                self._tie(inputs, out)
        return out

    def _tie(self, inputs: list[TensorBase], out: Any) -> None:
        node = NotImplementedNode(self.op)
        node._set_next_edges(collect_next_edges([*inputs]))
        for tensor in _tensors(out if isinstance(out, (tuple, list)) else (out,)):
            if not needs_grad(tensor):
                set_history(tensor, node)


@final
class UndefinedGradNode(Node):
    """Gives its inputs no gradient, which means zero."""

    def __init__(self, inputs: i64) -> None:
        super().__init__(next_sequence_nr())
        self.inputs = inputs

    def name(self) -> str:
        return "UndefinedGrad"

    def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:
        return [None] * self.inputs


def require_grad_together(results: Any, args: tuple[Any, ...]) -> None:
    """Make all results require grad if any argument does, like the results of one node in PyTorch.
    The gradients of results that do not depend on it are lost."""
    if not current_state().grad_enabled:
        return
    alone = [result for result in results if not needs_grad(result)]
    inputs = [tensor for tensor in _tensors(args) if needs_grad(tensor)] if alone else []
    if not inputs:
        return
    node = UndefinedGradNode(len(inputs))
    node._set_next_edges(collect_next_edges([*inputs]))
    keyset = inputs[0]._keyset
    for result in alone:
        if result._keyset == keyset:  # of the same transforms
            set_history(result, node)


def _tensors(values: Any) -> list[TensorBase]:
    found: list[TensorBase] = []
    for value in values:
        if isinstance(value, TensorBase):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found.extend(_tensors(value))
    return found


name_node_class(NotImplementedNode, "NotImplemented")
name_node_class(UndefinedGradNode, "UndefinedGrad")
set_missing_gradient(MissingGradientKernel)
