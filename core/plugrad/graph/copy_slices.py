"""CopySlices: the node of an in-place operator that wrote into a view.

    base --view--> v ;  v.op_(x)

is, for the gradient, one operator on the base: `base[v] = op(base[v], x)`. Its gradient with
respect to the base passes through outside the view and through `op`'s node inside.
"""

from __future__ import annotations

from typing import Any, final

from mypy_extensions import i64

from plugrad.dispatch.keys import TRANSFORMS_BIT
from plugrad.graph.former_geometry import follow_base
from plugrad.graph.history import (
    gradient_edge,
    next_sequence_nr,
    set_copy_slices_class,
)
from plugrad.graph.node import Edge, Node
from plugrad.graph.saved_variable import raise_freed
from plugrad.graph.support import operators
from plugrad.memory_format import contiguous_format
from plugrad.tensor.aliasing.layout import is_contiguous, storage_offset, strides
from plugrad.tensor.aliasing.strides import reach
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.views import ViewInfo, replay_view, steps_up_to


@final
class CopySlices(Node):
    """Gradient of writing the result of `inner` into a view of `base`.

    Its edges are the edges of `inner`, except number `position`. There `inner` leads to the former
    view, which only marks that the gradient is needed; this node leads to the base.
    """

    def __init__(self, base: TensorBase, view: ViewInfo, inner: Node, position: i64) -> None:
        super().__init__(next_sequence_nr())
        follow_base(view)
        # Not `view` itself, which refers to the base: this node becomes the base's grad_fn.
        self.last = view.last
        self.inner: Node | None = inner
        self.position: i64 = position
        self.strides: tuple[int, ...] | None = None
        self.offset: int = 0
        if view.last.strided or not is_contiguous(base):
            self.strides = strides(base)
            self.offset = storage_offset(base)
        edges: list[Edge] = list(inner._next_edges)
        edges[position] = gradient_edge(base)
        self._set_next_edges(tuple(edges))

    def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:
        grad = grads[0]
        if grad is None:
            return [None] * self._edge_count
        inner = self.inner
        if inner is None:
            raise_freed()
        whole = self._copy(grad)
        part = replay_view(steps_up_to(self.last), whole, -self.offset)
        # `inner` may keep what it is given, and `part` is about to change.
        outputs = inner.apply([operators["clone"](part)])
        found: list[TensorBase | None] = list(outputs)
        into_view = outputs[self.position]
        if into_view is None or self._edge_node(self.position) is None:
            found[self.position] = None
        else:
            operators["copy_"](part, into_view)
            found[self.position] = whole
        return found

    def _copy(self, grad: TensorBase) -> TensorBase:
        """The gradient of the base in memory of its own, laid out so that the view can be taken."""
        if self.strides is None:
            copy: TensorBase = operators["clone"](grad, memory_format=contiguous_format)
            return copy
        place: Any
        if grad._keyset & TRANSFORMS_BIT:
            # Memory for all elements of a batch, if it is one.
            length = reach(sizes_of(grad), self.strides, 0)
            room = operators["new_empty"](grad, (length,))
            place = operators["as_strided"](room, sizes_of(grad), self.strides)
        else:
            place = operators["empty_strided"](
                sizes_of(grad), self.strides, dtype=grad.dtype, device=grad.device
            )
        operators["copy_"](place, grad)
        laid_out: TensorBase = place
        return laid_out

    def _release_variables(self) -> None:
        # The tensors that `inner` saved are released with it, unless it is a node of this graph
        # itself: the grad_fn of its saved result, after the view was freed.
        self.inner = None


set_copy_slices_class(CopySlices)
