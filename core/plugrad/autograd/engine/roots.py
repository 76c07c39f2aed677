"""Where a backward pass starts: its roots and their gradients."""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from plugrad.autograd.engine.validate import fit_gradient
from plugrad.graph.node import Edge, Node
from plugrad.tensor.base import TensorBase, sizes_of


@final
class GraphRoot(Node):
    """Where a pass with several roots starts: hands each its gradient."""

    def __init__(self, edges: tuple[Edge, ...], grads: list[TensorBase | None]) -> None:
        super().__init__(0)
        self.grads = grads
        self._set_next_edges(edges)

    def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:
        return list(self.grads)


@final
class Identity(Node):
    """Passes a gradient through; stands in for a tensor that is not in the graph."""

    def __init__(self) -> None:
        super().__init__(0)

    def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:
        return grads


def min_topological_nr(outputs: list[Edge]) -> i64:
    """Nodes below this number cannot lead to any of the outputs."""
    if not outputs:
        return 0
    smallest: i64 = -1
    for edge in outputs:
        function = edge.function
        if function is not None and (smallest < 0 or function._topological_nr < smallest):
            smallest = function._topological_nr
    return smallest if smallest > 0 else 0


def validate_roots(roots: tuple[Edge, ...], grads: list[TensorBase | None]) -> None:
    for index, edge in enumerate(roots):
        function = edge.function
        grad = grads[index]
        if function is None or grad is None:
            continue
        metadata = function._metadata_of_input(edge.input_nr)
        if metadata is not None and (
            grad.dtype is not metadata.dtype
            or grad.device is not metadata.device
            or sizes_of(grad) != metadata.shape
        ):
            grads[index] = fit_gradient(grad, metadata, None, index)
