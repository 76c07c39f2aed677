"""What a plugin needs that watches a program: calls, dispatch keys, nodes, and the engine at work.

`Trace` hears of everything; `watching` has one hear of this thread, and of the devices' threads
that work for its backward passes. While nobody watches, none of this costs anything. The other
functions say what there is to know of a node without changing anything: no history is made anew,
no saved tensor is unpacked.

    >>> import plugrad
    >>> from plugrad.plugins.watching import Trace, name_of, watching
    >>> class Order(Trace):
    ...     def enter_node(self, node):
    ...         print(name_of(node))
    ...         super().enter_node(node)
    >>> x = plugrad.ones(2, requires_grad=True)
    >>> y = x.exp().sum()
    >>> with watching(Order()):
    ...     y.backward()
    SumBackward0
    ExpBackward0
    AccumulateGrad
"""

from __future__ import annotations

from typing import Any

from plugrad.autograd.variable.accumulate_grad import AccumulateGradBase
from plugrad.dispatch.listener import Trace
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.scope import Scope
from plugrad.graph.node import name_of
from plugrad.graph.saved_tensor import kept_by, saving_fields
from plugrad.tensor.base import sizes_of

__all__ = [
    "Trace",
    "edges_of",
    "history_of",
    "leaf_of",
    "name_of",
    "notes_of",
    "output_of",
    "saved_by",
    "sizes_of",
    "watching",
]

_fields: dict[type, tuple[str, ...]] = {}


class watching(Scope):
    """Context manager: a trace hears of what this thread does, before those that already do.

    Args:
        trace: it gets `outer`, so it can watch one thread at a time.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def read(self, state: LocalState) -> Any:
        return state.trace

    def change(self, state: LocalState) -> None:
        self.trace.outer = state.trace
        state.trace = self.trace

    def restore(self, state: LocalState, before: Any) -> None:
        state.trace = before

    def value(self) -> Trace:
        return self.trace


def history_of(tensor: Any) -> tuple[Any, int] | None:
    """The node that computes a tensor's gradient, as far as it has been made, and the number of
    the input that is its gradient; None for a leaf."""
    meta = tensor._autograd_meta
    return None if meta is None or meta.grad_fn is None else (meta.grad_fn, int(meta.output_nr))


def leaf_of(node: Any) -> Any:
    """The leaf whose gradient a node accumulates, or None."""
    return node.variable if isinstance(node, AccumulateGradBase) else None


def edges_of(node: Any) -> list[tuple[Any, int]]:
    """Where a node's outputs go: pairs of the next node, or None, and the number of its input."""
    return [(node._edge_node(index), node._edge_nr(index)) for index in range(node._edge_count)]


def output_of(node: Any) -> tuple[tuple[int, ...], str] | None:
    """Shape and dtype of the first tensor that a node's forward made; None if it made none."""
    metadata = node._metadata_of_input(0) if node._num_inputs() else None
    return None if metadata is None else (metadata.shape, metadata.dtype.name)


def saved_by(node: Any) -> list[tuple[str, Any]]:
    """Names of what a node has saved and not let go of, and the tensors, or what a pack hook has
    made of them."""
    cls = type(node)
    fields = _fields.get(cls)
    if fields is None:
        fields = _fields[cls] = saving_fields(node)
    return kept_by(node, fields) if fields else []


def notes_of(node: Any) -> dict[Any, Any]:
    """A dictionary that lives as long as the node; for keys of the caller's own."""
    notes: dict[Any, Any] | None = node._extra
    if notes is None:
        notes = node._extra = {}
    return notes
