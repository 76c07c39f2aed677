"""Passes on the graph of a step that only lowerings use; they drop work that eager execution
needs."""

from __future__ import annotations

from plugrad.transforms.capture.graph import Graph


def cleaned(graph: Graph) -> Graph:
    """The graph as lowerings get it."""
    return graph.optimized()
