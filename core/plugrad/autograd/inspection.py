"""Reads a node's properties without changing anything, for plugins that observe a program.

It regenerates no view's history and unpacks no saved tensor.
"""

from __future__ import annotations

from typing import Any, Final

from plugrad.autograd.variable.accumulate_grad import AccumulateGradBase
from plugrad.dispatch.keys import keys_of
from plugrad.graph.node import Node
from plugrad.graph.saved_tensor import kept_by, saving_fields
from plugrad.tensor.base import TensorBase

_fields: Final[dict[type, tuple[tuple[str, str], ...]]] = {}


def history_of(tensor: TensorBase) -> tuple[Node, int] | None:
    """The node that computes a tensor's gradient, if it exists yet, and the number of the input
    that is its gradient; None for a leaf.

    >>> import plugrad
    >>> from plugrad.plugins.watching import history_of
    >>> node, number = history_of(plugrad.ones(2, requires_grad=True).exp())
    >>> node.name(), number
    ('ExpBackward0', 0)
    """
    meta = tensor._autograd_meta
    if meta is None or meta.grad_fn is None:
        return None
    return meta.grad_fn, int(meta.output_nr)


def leaf_of(node: Node) -> TensorBase | None:
    """The leaf into which a node accumulates gradients, or None.

    >>> import plugrad
    >>> from plugrad.plugins.watching import leaf_of
    >>> x = plugrad.ones(2, requires_grad=True)
    >>> accumulate = x.exp().grad_fn.next_functions[0][0]
    >>> leaf_of(accumulate) is x
    True
    """
    return node.variable if isinstance(node, AccumulateGradBase) else None


def edges_of(node: Node) -> list[tuple[Node | None, int]]:
    """Where a node's outputs go: pairs of the next node, or None, and the number of its input.

    >>> import plugrad
    >>> from plugrad.plugins.watching import edges_of, name_of
    >>> node = plugrad.ones(2, requires_grad=True).exp().sum().grad_fn
    >>> [(name_of(edge), number) for edge, number in edges_of(node)]
    [('ExpBackward0', 0)]
    """
    return [
        (node._edge_node(index), int(node._edge_nr(index))) for index in range(node._edge_count)
    ]


def output_of(node: Node) -> tuple[tuple[int, ...], str] | None:
    """Shape and dtype of the first tensor that a node's forward made; None if it made none.

    >>> import plugrad
    >>> from plugrad.plugins.watching import output_of
    >>> output_of(plugrad.ones(2, 3, requires_grad=True).exp().grad_fn)
    ((2, 3), 'float32')
    """
    metadata = node._metadata_of_input(0) if node._num_inputs() > 0 else None
    return None if metadata is None else (metadata.shape, metadata.dtype.name)


def saved_by(node: Node) -> list[tuple[str, Any]]:
    """Names of a node's saved tensors that are not freed yet, with the tensors, or the results of a
    pack hook.

    >>> import plugrad
    >>> from plugrad.plugins.watching import saved_by
    >>> node = plugrad.ones(2, requires_grad=True).exp().grad_fn
    >>> [name for name, _ in saved_by(node)]
    ['result']
    """
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
    """A dictionary that lives as long as the node; for keys of the caller's own.

    >>> import plugrad
    >>> from plugrad.plugins.watching import note_of, notes_of
    >>> node = plugrad.ones(2, requires_grad=True).exp().grad_fn
    >>> notes_of(node)["mine"] = "first"
    >>> note_of(node, "mine")
    'first'
    """
    notes = node._extra
    if notes is None:
        notes = {}
        node._extra = notes
    return notes


def note_of(node: Node, key: object) -> Any:
    """What the caller has noted of a node by a key, or None."""
    notes = node._extra
    return None if notes is None else notes.get(key)


def key_names(keyset: int) -> tuple[str, ...]:
    """Names of the dispatch keys in a key set from a trace or a journal, the highest first."""
    return tuple([key.name for key in keys_of(keyset)])
