"""Which values of a graph may share memory, by the schemas of the operators that made them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrad.transforms.capture.node import Node

if TYPE_CHECKING:
    from plugrad.transforms.capture.graph import Graph

# Inputs and constants may share memory with each other; the graph does not record this.
OUTSIDE = ""


class Aliases:
    """For each value the memory that may hold it.

    A piece of memory has the name of the value that was made with it. Tensors from outside may
    overlap, so they have one piece of memory, called `OUTSIDE`.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._roots: dict[str, frozenset[str]] = {}
        outside = [each.name for each in graph.inputs]
        outside += [c.name for c in graph.held.values() if not c.fresh]
        self._outside = frozenset(outside)
        for name in (*outside, *graph.held):
            self._roots[name] = frozenset([name])
        for node in graph.nodes:
            for result, shares in zip(node.results, node.shares, strict=True):
                if result is not None and result not in self._roots:
                    roots = [self._roots[other] for other in shares]
                    self._roots[result] = frozenset([] if roots else [result]).union(*roots)

    def places(self, name: str) -> frozenset[str]:
        """The memory that a value may be in."""
        roots = self._roots[name]
        if roots.isdisjoint(self._outside):
            return roots
        return (roots - self._outside) | {OUTSIDE}

    def all_places(self, names: list[str]) -> frozenset[str]:
        """The memory that any of several values may be in."""
        return frozenset[str]().union(*[self.places(name) for name in names])

    def written(self, node: Node) -> frozenset[str]:
        """The memory that a node writes to."""
        return self.all_places(list(node.writes))

    def mutations(self) -> tuple[str, ...]:
        """The inputs and constants that are written to, in their order."""
        found: set[str] = set()
        for node in self.graph.nodes:
            for name in node.writes:
                found |= self._roots[name] & self._outside
        order = [*[each.name for each in self.graph.inputs], *self.graph.held]
        return tuple([name for name in order if name in found])
