"""A backward pass in two parts: first the gradients of a stage's inputs, which the previous stage
waits for, and later the gradients of its parameters, when the rank has no other work.

    w ──┐
    x ──linear── relu ── output       first:  output → relu → linear → x
                                      later:  linear → w

Nodes that lead to inputs and to something else are junctions: `linear` here. The first part keeps
the gradients that arrive there; the second part continues from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import plugrad
from plugrad import Tensor
from plugrad.autograd.graph import GradientEdge, get_gradient_edge

__all__ = ["SplitBackward"]


class _Junction(NamedTuple):
    """A node, and the positions of its edges that lead only to parameters."""

    node: Any
    places: tuple[int, ...]
    # Whether another node also leads to one of these.
    shared: bool


class SplitBackward:
    """The two parts of one backward pass.

    Args:
        outputs: the tensors where it begins.
        grads: their gradients; None for a loss.
        inputs: the leaves for which the first part computes gradients.

    >>> import plugrad
    >>> from plugrad_distributed.distributed.pipelining.splitting import SplitBackward
    >>> layer = plugrad.nn.Linear(1, 1, bias=False)
    >>> x = plugrad.ones(2, 1, requires_grad=True)
    >>> split = SplitBackward([(3 * layer(x)).sum()], [None], [x])
    >>> bool((split.input_grads()[0] == 3 * layer.weight).all()), layer.weight.grad
    (True, None)
    >>> split.parameter_grads()
    >>> layer.weight.grad
    tensor([[6.]])
    """

    def __init__(
        self, outputs: Sequence[Tensor], grads: Sequence[Tensor | None], inputs: Sequence[Tensor]
    ) -> None:
        self._outputs = list(outputs)
        self._grads = [
            plugrad.ones_like(output) if grad is None else grad
            for output, grad in zip(outputs, grads, strict=True)
        ]
        self._inputs = list(inputs)
        # Outputs that do not depend on inputs wait for the second part.
        self._separate: list[tuple[GradientEdge, Tensor]] = []
        self._arrived: list[tuple[_Junction, list[Tensor | None]]] = []

    def input_grads(self) -> list[Tensor | None]:
        """The gradients of the inputs; None for those that the outputs do not depend on."""
        graph = _Graph(self._outputs, self._inputs)
        self._separate = [
            (edge, grad)
            for edge, grad in zip(graph.roots, self._grads, strict=True)
            if id(edge.node) not in graph.reaching
        ]
        if not (self._inputs and self._outputs):
            return [None] * len(self._inputs)
        handles = []
        for junction in graph.junctions():

            def keep(grads: Sequence[Tensor | None], junction: _Junction = junction) -> None:
                self._arrived.append((junction, list(grads)))

            handles.append(junction.node.register_prehook(keep))
        try:
            found: Sequence[Tensor | None] = plugrad.autograd.grad(
                self._outputs, self._inputs, self._grads, retain_graph=True, allow_unused=True
            )
        finally:
            for handle in handles:
                handle.remove()
        return list(found)

    def parameter_grads(self) -> None:
        """Accumulate the gradients of parameters. Hooks on tensors within the stage run a second
        time; their results are then ignored."""
        edges = [edge for edge, _ in self._separate]
        grads = [grad for _, grad in self._separate]
        for junction, arrived in self._arrived:
            for edge, grad in _beyond(junction, arrived):
                if grad is not None:
                    edges.append(edge)
                    grads.append(grad)
        self._separate, self._arrived = [], []
        if edges:
            # All in one pass, so that a node that several of them lead to runs once, with its
            # complete gradient.
            plugrad.autograd.backward(edges, grads)


def _beyond(
    junction: _Junction, arrived: Sequence[Tensor | None]
) -> list[tuple[GradientEdge, Tensor | None]]:
    """The gradients that a junction passes to its edges to parameters."""
    node = junction.node
    given = [(number, grad) for number, grad in enumerate(arrived) if grad is not None]
    # The engine sums the gradients of one edge.
    edges = list({node.next_functions[place]: None for place in junction.places})
    # The stored gradients already passed the hooks of tensors.
    handles = [node.register_prehook(lambda grads: tuple(arrived))]
    if junction.shared:
        # The engine also finds the other paths to an edge, through the inputs.
        handles.append(node.register_hook(lambda grads, _: _only(grads, junction.places)))
    try:
        found: Sequence[Tensor | None] = plugrad.autograd.grad(
            [GradientEdge(node, number) for number, _ in given],
            [GradientEdge(*edge) for edge in edges],
            [grad for _, grad in given],
            retain_graph=junction.shared,
            allow_unused=True,
        )
    finally:
        for handle in handles:
            handle.remove()
    return [(GradientEdge(*edge), grad) for edge, grad in zip(edges, found, strict=True)]


def _only(grads: Sequence[Tensor | None], places: Sequence[int]) -> tuple[Tensor | None, ...]:
    """Gradients, with zeros at all other positions."""
    return tuple(
        grad if grad is None or place in places else plugrad.zeros_like(grad)
        for place, grad in enumerate(grads)
    )


class _Graph:
    """The part of the graph behind some outputs.

    Attributes:
        roots: the edges that lead into it.
        reaching: the ids of the nodes that lead to inputs, including the inputs' own nodes.
    """

    def __init__(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        self.roots = [get_gradient_edge(output) for output in outputs]
        # Kept alive, so that no other node gets the same id.
        self._ends = [get_gradient_edge(each).node for each in inputs]
        self.reaching = {id(node) for node in self._ends}
        self._nodes: list[Any] = []
        self._parents: dict[int, set[int]] = {}
        self._walk()

    def _walk(self) -> None:
        """Visit each node before its successors, and again after all of them."""
        seen: set[int] = set()
        waiting = [(root.node, True) for root in self.roots]
        while waiting:
            node, enters = waiting.pop()
            following = [after for after, _ in node.next_functions if after is not None]
            if not enters:
                if any(id(after) in self.reaching for after in following):
                    self.reaching.add(id(node))
            elif id(node) not in seen:
                seen.add(id(node))
                self._nodes.append(node)
                waiting.append((node, False))
                waiting += [(after, True) for after in following]
                for after in following:
                    self._parents.setdefault(id(after), set()).add(id(node))

    def junctions(self) -> list[_Junction]:
        """The nodes that lead to inputs and to something else."""
        found = []
        for node in self._nodes:
            if id(node) not in self.reaching:
                continue
            places = tuple(
                place
                for place, (after, _) in enumerate(node.next_functions)
                if after is not None and id(after) not in self.reaching
            )
            if places:
                ends = [node.next_functions[place][0] for place in places]
                shared = any(len(self._parents[id(end)]) > 1 for end in ends)
                found.append(_Junction(node, places, shared))
        return found
