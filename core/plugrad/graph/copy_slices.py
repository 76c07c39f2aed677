"""CopySlices: the node of an in-place operator that wrote into a view.

    base --view--> v ;  v.op_(x)

is, for the gradient, one operator on the base: `base[v] = op(base[v], x)`. Its gradient with
respect to the base passes through outside the view and through `op`'s node inside.
"""

from __future__ import annotations

from typing import final

from plugrad.graph.history import (
    gradient_edge,
    next_sequence_nr,
    set_copy_slices_class,
)
from plugrad.graph.node import Edge, Node
from plugrad.graph.saved_variable import raise_freed
from plugrad.graph.support import operators
from plugrad.tensor.base import TensorBase, ViewInfo, sizes_of


@final
class CopySlices(Node):
    """Gradient of writing the result of `inner` into a view of `base`."""

    def __init__(self, base: TensorBase, view: ViewInfo, inner: Node) -> None:
        super().__init__(next_sequence_nr())
        self.view = view
        self.inner: Node | None = inner
        self.base_shape = sizes_of(base)
        edges: list[Edge] = [gradient_edge(base)]
        edges.extend(inner.next_edges[1:])
        self.set_next_edges(tuple(edges))

    def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:
        count = len(self.next_edges)
        grad = grads[0]
        if grad is None:
            return [None] * count
        inner = self.inner
        if inner is None:
            raise_freed()
        result: TensorBase = operators["clone"](grad)
        part = self.view.replay(result)
        outputs = inner.apply([operators["clone"](part)])
        into_view = outputs[0]
        if into_view is None:
            operators["zero_"](part)
        else:
            operators["copy_"](part, into_view)
        found: list[TensorBase | None] = [result]
        found.extend(outputs[1:])
        return found

    def release_variables(self) -> None:
        if self.inner is not None:
            self.inner.release_variables()
            self.inner = None


set_copy_slices_class(CopySlices)
