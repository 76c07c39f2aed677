"""Layout of a graph's nodes: layers by the longest path, the order within them by igraph."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import igraph

# Above the first number of nodes, including dummies for long edges, igraph's crossing reduction
# gets fewer rounds; above the second, nodes stay in numeric order.
MANY: Final = 2_000
TOO_MANY: Final = 40_000
ROUNDS: Final = 50
FEWER_ROUNDS: Final = 5

Edges = Sequence[tuple[int, int]]


def layers_of(count: int, edges: Edges, leaves: frozenset[int] = frozenset()) -> list[int]:
    """The layer of each node: an edge leads from a lower to a higher layer.

    Leaves are placed right before the first node that they lead to, so that edges stay short.

    Args:
        edges: pairs of nodes, without circles.
        leaves: nodes without incoming edges.
    """
    after: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for start, end in edges:
        after[start].append(end)
        if start not in leaves:
            waits[end] += 1
    layers = [0] * count
    ready = [node for node in range(count) if not waits[node] and node not in leaves]
    # A node with only leaves as inputs needs a layer before it for them.
    for leaf in leaves:
        for end in after[leaf]:
            layers[end] = max(layers[end], 1)
    while ready:
        node = ready.pop()
        for end in after[node]:
            layers[end] = max(layers[end], layers[node] + 1)
            waits[end] -= 1
            if not waits[end]:
                ready.append(end)
    for leaf in leaves:
        layers[leaf] = min((layers[end] for end in after[leaf]), default=1) - 1
    return layers


def columns_of(layers: Sequence[int], edges: Edges) -> list[float]:
    """The position of each node in its layer: at least 1 apart, with edges as straight as
    possible."""
    count = len(layers)
    dummies = sum(abs(layers[end] - layers[start]) - 1 for start, end in edges)
    if count + max(dummies, 0) > TOO_MANY:
        return _in_order(layers)
    every_layer, short = _with_dummies(layers, edges)
    rounds = ROUNDS if len(every_layer) <= MANY else FEWER_ROUNDS
    graph = igraph.Graph(n=len(every_layer), edges=short, directed=True)
    placed = graph.layout_sugiyama(layers=every_layer, hgap=1, vgap=1, maxiter=rounds)
    columns = [float(placed[node][0]) for node in range(count)]
    return _apart(columns, layers)


def _with_dummies(layers: Sequence[int], edges: Edges) -> tuple[list[int], list[tuple[int, int]]]:
    """The layers of all nodes and of dummies behind them, one in each layer that an edge passes;
    and the edges in pieces. igraph 1.0 divides them itself, but now and then crashes by it."""
    every_layer = list(layers)
    pieces: list[tuple[int, int]] = []
    for start, end in edges:
        before = start
        for layer in range(layers[start] + 1, layers[end]):
            pieces.append((before, len(every_layer)))
            before = len(every_layer)
            every_layer.append(layer)
        pieces.append((before, end))
    return every_layer, pieces


def _in_order(layers: Sequence[int]) -> list[float]:
    filled: dict[int, int] = {}
    columns: list[float] = []
    for layer in layers:
        columns.append(float(filled.get(layer, 0)))
        filled[layer] = filled.get(layer, 0) + 1
    return columns


def _apart(columns: list[float], layers: Sequence[int]) -> list[float]:
    """Columns from 0 on, with a space of 1 even where rounding took some of it."""
    least = min(columns, default=0.0)
    by_layer: dict[int, list[int]] = {}
    for node, layer in enumerate(layers):
        by_layer.setdefault(layer, []).append(node)
    placed = [column - least for column in columns]
    for nodes in by_layer.values():
        nodes.sort(key=lambda node: placed[node])
        for left, right in pairwise(nodes):
            placed[right] = max(placed[right], placed[left] + 1)
    return placed
