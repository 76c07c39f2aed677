"""ViewOfBase: the grad_fn of a view after a write to its base.

    base --op 1--> view 1 --op 2--> view      base.mul_(2)

The view's former grad_fn leads to the former base; the new one leads to the present base. In
PyTorch it is one AsStridedBackward0, whatever the operators were. Here a node of that name runs the
nodes of the operators, and each of them computes its own gradient.
"""

from __future__ import annotations

from typing import Final, final

from plugrad.dispatch.local_state import current_state
from plugrad.graph.former_geometry import CHANGE_DTYPE, follow_base
from plugrad.graph.history import gradient_edge, next_sequence_nr, set_view_of_base
from plugrad.graph.node import Node
from plugrad.graph.support import name_node_class, operators
from plugrad.tensor.base import TensorBase, needs_grad, sizes_of
from plugrad.tensor.views import ViewInfo, ViewStep


@final
class _Replay:
    """Whether a view gets the nodes of its operators themselves; of all threads."""

    def __init__(self) -> None:
        self.enabled: bool = False


_replay: Final = _Replay()


def view_replay() -> bool:
    """Whether a view gets the nodes of its operators after a write to its base."""
    return _replay.enabled


def set_view_replay(enabled: bool) -> None:
    """Give such views the nodes of their operators, or one node that replaces them."""
    _replay.enabled = enabled


@final
class ViewOfBase(Node):
    """Gradient of several views, one of the other, as one node.

    Attributes:
        nodes: their nodes, the last view's first.
        output_nrs: the output of its node that each view is.
    """

    def __init__(self, tensor: TensorBase, base: TensorBase) -> None:
        super().__init__(next_sequence_nr())
        self.nodes: list[Node] = []
        self.output_nrs: list[int] = []
        self._set_next_edges((gradient_edge(base),))
        self._add_input_metadata(tensor)

    def take_over(self, last: Node, output_nr: int, count: int) -> None:
        """Run `count` nodes, which follow one another from `last` on, in place of this one."""
        node: Node | None = last
        for _ in range(count):
            assert node is not None
            self.nodes.append(node)
            self.output_nrs.append(output_nr)
            output_nr = node._edge_nr(0)
            node = node._edge_node(0)

    def name(self) -> str:
        return "AsStridedBackward0"

    def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:
        grad = grads[0]
        if self._edge_node(0) is None:
            return [None]
        for position, node in enumerate(self.nodes):
            if grad is None:
                break
            if position > 0:
                grad = _fit(grad, node, self.output_nrs[position])
            inputs: list[TensorBase | None] = [None] * node._num_inputs()
            inputs[self.output_nrs[position]] = grad
            grad = node.apply(inputs)[0]
        if grad is not None and (grad is grads[0] or grad._view_info is not None):
            # As in PyTorch, it has memory of its own: a write to one does not change the other.
            grad = operators["clone"](grad)
        return [grad]


def _fit(grad: TensorBase, node: Node, input_nr: int) -> TensorBase:
    """Sum a gradient to the shape of a view that the next one expanded."""
    metadata = node._metadata_of_input(input_nr)
    sizes = sizes_of(grad)
    if metadata is None or metadata.shape == sizes:
        return grad
    shape = metadata.shape
    added = len(sizes) - len(shape)
    dims = [dim for dim in range(len(sizes)) if dim < added or shape[dim - added] != sizes[dim]]
    fitted: TensorBase = operators["sum"](grad, dims, True)
    if added > 0:
        fitted = operators["reshape"](fitted, shape)
    return fitted


def view_of_base(tensor: TensorBase, view: ViewInfo) -> Node:
    """A grad_fn for a view that leads to its base's."""
    follow_base(view)
    base = view.base
    if not needs_grad(base):
        return ViewOfBase(tensor, base)
    state = current_state()
    grad_enabled = state.grad_enabled
    state.grad_enabled = True
    try:
        meta = view.replay(base)._autograd_meta
    finally:
        state.grad_enabled = grad_enabled
    assert meta is not None
    last = meta.grad_fn
    assert last is not None
    if _replay.enabled and meta.output_nr == 0:
        return last
    step: ViewStep | None = view.last
    while step is not None:
        if step.op.name in CHANGE_DTYPE:
            # Their gradients have another dtype: their nodes run one by one, as in the engine.
            return last
        step = step.before
    node = ViewOfBase(tensor, base)
    node.take_over(last, int(meta.output_nr), int(view.last.count))
    return node


name_node_class(ViewOfBase, "AsStridedBackward0")
set_view_of_base(view_of_base)
