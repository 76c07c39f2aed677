"""What there is to know of a node, read without changing anything: for those who watch a program.

No history is made anew, and no saved tensor is unpacked.
"""

from __future__ import annotations

from typing import Any, Final

from plugrad.autograd.variable.accumulate_grad import AccumulateGradBase
from plugrad.graph.node import Node
from plugrad.graph.saved_tensor import kept_by, saving_fields
from plugrad.tensor.base import TensorBase

_fields: Final[dict[type, tuple[tuple[str, str], ...]]] = {}


def history_of(tensor: TensorBase) -> tuple[Node, int] | None:
    """The node that computes a tensor's gradient, as far as it has been made, and the number of
    the input that is its gradient; None for a leaf."""
    meta = tensor._autograd_meta
    if meta is None or meta.grad_fn is None:
        return None
    return meta.grad_fn, int(meta.output_nr)


def leaf_of(node: Node) -> TensorBase | None:
    """The leaf whose gradient a node accumulates, or None."""
    return node.variable if isinstance(node, AccumulateGradBase) else None


def edges_of(node: Node) -> list[tuple[Node | None, int]]:
    """Where a node's outputs go: pairs of the next node, or None, and the number of its input."""
    return [
        (node._edge_node(index), int(node._edge_nr(index))) for index in range(node._edge_count)
    ]


def output_of(node: Node) -> tuple[tuple[int, ...], str] | None:
    """Shape and dtype of the first tensor that a node's forward made; None if it made none."""
    metadata = node._metadata_of_input(0) if node._num_inputs() > 0 else None
    return None if metadata is None else (metadata.shape, metadata.dtype.name)


def saved_by(node: Node) -> list[tuple[str, Any]]:
    """Names of what a node has saved and not let go of, and the tensors, or what a pack hook has
    made of them."""
    return kept_by(node, saving_names(node))


def saving_names(node: Node) -> tuple[tuple[str, str], ...]:
    """The fields of nodes of this class that hold saved tensors, each with the tensor's name."""
    cls = type(node)
    fields = _fields.get(cls)
    if fields is None:
        fields = saving_fields(node)
        _fields[cls] = fields
    return fields


def notes_of(node: Node) -> dict[Any, Any]:
    """A dictionary that lives as long as the node; for keys of the caller's own."""
    notes = node._extra
    if notes is None:
        notes = {}
        node._extra = notes
    return notes


def note_of(node: Node, key: object) -> Any:
    """What the caller has noted of a node by a key, or None."""
    notes = node._extra
    return None if notes is None else notes.get(key)
