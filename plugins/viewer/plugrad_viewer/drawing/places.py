"""Layout of a picture's boxes: each group is laid out separately, then as one box of its parent.

So groups never overlap, and a large picture is many small problems. In a group, layers come from
the longest paths, the order in a layer from igraph, and positions are as close as possible to a
box's neighbours. Space is reserved where an edge passes a layer or the border of a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Final

from plugrad_viewer.drawing.layers import columns_of, layers_of
from plugrad_viewer.drawing.picture import LETTER, Picture

BETWEEN_BOXES: Final = 18.0
BETWEEN_LAYERS: Final = 30.0
BESIDE_PORTS: Final = 14.0
AROUND: Final = 12.0
TITLE: Final = 20.0
PASSAGE: Final = 8.0
SWEEPS: Final = 6
# Edges over more layers than that get no reserved space if there are many of them.
MANY_PASSAGES: Final = 30_000

Point = tuple[float, float]


@dataclass
class Places:
    """Rectangles (left, top, width, height) of boxes and groups, and the points of edges."""

    boxes: list[tuple[float, float, float, float]]
    groups: list[tuple[float, float, float, float]]
    paths: list[list[Point]]
    width: float
    height: float


@dataclass
class _Part:
    """The layout of one group.

    Attributes:
        children: boxes by their numbers, groups below 0 (`~number`), and after the last box the
            ports, where edges cross the border.
        ports: the port of each child for edges that leave the group (True) or enter it.
    """

    children: list[int] = field(default_factory=list)
    edges: dict[tuple[int, int], None] = field(default_factory=dict)
    places: dict[int, Point] = field(default_factory=dict)
    passages: dict[tuple[int, int], list[Point]] = field(default_factory=dict)
    ports: dict[tuple[int, bool], int] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0


def place(picture: Picture) -> Places:
    """Compute the positions of everything in a picture."""
    return _Layout(picture).run()


class _Layout:
    def __init__(self, picture: Picture) -> None:
        self.picture = picture
        groups = picture.groups
        self.parts = {number: _Part() for number in range(-1, len(groups))}
        # Groups around a box, the outermost (-1) first.
        self.around: dict[int, list[int]] = {-1: [-1]}
        for number, group in enumerate(groups):  # a parent has a lower number
            self.around[number] = [*self.around[group.parent], number]
            self.parts[group.parent].children.append(~number)
        for number, box in enumerate(picture.boxes):
            self.parts[box.group].children.append(number)
        self.count = len(picture.boxes)
        self.routes = [self._route(start, end) for start, end in picture.edges]

    def _route(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """An edge as steps, each between two children of one group: out of the groups around its
        start, within the innermost group around both ends, and into those around its end."""
        boxes = self.picture.boxes
        first, second = self.around[boxes[start].group], self.around[boxes[end].group]
        depth = 0
        while depth < min(len(first), len(second)) and first[depth] == second[depth]:
            depth += 1
        steps: list[tuple[int, int, int]] = []
        for group in reversed(first[depth:]):
            steps.append((group, start, self._port(group, start, True)))
            start = ~group
        inward: list[tuple[int, int, int]] = []
        for group in reversed(second[depth:]):
            inward.append((group, self._port(group, end, False), end))
            end = ~group
        steps += [(first[depth - 1], start, end), *reversed(inward)]
        for group, left, right in steps:
            self.parts[group].edges[left, right] = None
        return steps

    def _port(self, group: int, child: int, out: bool) -> int:
        part = self.parts[group]
        port = part.ports.get((child, out))
        if port is None:
            port = part.ports[child, out] = self.count
            part.children.append(port)
            self.count += 1
        return port

    def run(self) -> Places:
        sources = self.picture.sources()
        for number in range(len(self.picture.groups) - 1, -2, -1):
            self._arrange(self.parts[number], sources, number)
        corners: dict[int, Point] = {-1: (0.0, 0.0)}
        boxes = [(0.0, 0.0, 0.0, 0.0)] * len(self.picture.boxes)
        groups = [(0.0, 0.0, 0.0, 0.0)] * len(self.picture.groups)
        for number in range(-1, len(self.picture.groups)):
            part, (left, top) = self.parts[number], corners[number]
            if number >= 0:
                groups[number] = (left, top, part.width, part.height)
            for child, (x, y) in part.places.items():
                if child < 0:
                    corners[~child] = (left + x, top + y)
                elif child < len(boxes):
                    box = self.picture.boxes[child]
                    boxes[child] = (left + x, top + y, box.width, box.height)
        paths = [
            self._path(edge, route, boxes, corners)
            for edge, route in zip(self.picture.edges, self.routes, strict=True)
        ]
        whole = self.parts[-1]
        return Places(boxes, groups, paths, whole.width, whole.height)

    def _path(
        self,
        edge: tuple[int, int],
        route: Sequence[tuple[int, int, int]],
        boxes: Sequence[tuple[float, float, float, float]],
        corners: dict[int, Point],
    ) -> list[Point]:
        x, y, width, height = boxes[edge[0]]
        points = [(x + width / 2, y + height)]
        for group, start, end in route:
            part, (left, top) = self.parts[group], corners[group]
            if start >= len(boxes):  # enters through a port
                points += self._port_points(part, start, left, top, top)
            points += [(left + x, top + y) for x, y in part.passages.get((start, end), ())]
            if end >= len(boxes):
                points += self._port_points(part, end, left, top, top + part.height)
        x, y, width, height = boxes[edge[1]]
        return [*points, (x + width / 2, y)]

    def _port_points(
        self, part: _Part, port: int, left: float, top: float, border: float
    ) -> list[Point]:
        """A port, and the border that is crossed there, from above."""
        x, y = part.places[port]
        points = [(left + x + PASSAGE / 2, top + y), (left + x + PASSAGE / 2, border)]
        return sorted(points, key=lambda point: point[1])

    def _size(self, child: int) -> Point:
        if child < 0:
            return self.parts[~child].width, self.parts[~child].height
        if child >= len(self.picture.boxes):
            return PASSAGE, 0.0
        box = self.picture.boxes[child]
        return box.width, box.height

    def _arrange(self, part: _Part, sources: frozenset[int], number: int) -> None:
        index = {child: place for place, child in enumerate(part.children)}
        edges = [(index[start], index[end]) for start, end in part.edges]
        leaves = frozenset(index[child] for child in part.children if child in sources)
        sizes = [self._size(child) for child in part.children]
        layers = layers_of(len(sizes), edges, leaves)
        outward = [index[port] for (_, out), port in part.ports.items() if out]
        for place in outward:  # all of them below everything else
            layers[place] = max(layers)
        passages = cut(edges, layers, sizes)
        steps = [
            step for edge, via in passages.items() for step in pairwise((edge[0], *via, edge[1]))
        ]
        lefts = spread(sizes, layers, steps)
        rows, height = _rows(sizes, layers)
        width = max((left + size[0] for left, size in zip(lefts, sizes, strict=True)), default=0.0)
        title = 0.0
        if number >= 0:
            title = TITLE
            group = self.picture.groups[number]
            width = max(width, len(f"{group.title} {group.kind}") * LETTER)
        for child, place in index.items():
            top, tall = rows[layers[place]]
            y = top + (tall - sizes[place][1]) / 2
            part.places[child] = (AROUND + lefts[place], AROUND + title + y)
        for (start, end), via in passages.items():
            points: list[Point] = []
            for dummy in via:
                x = AROUND + lefts[dummy] + PASSAGE / 2
                top, tall = rows[layers[dummy]]
                points += [(x, AROUND + title + top), (x, AROUND + title + top + tall)]
            part.passages[part.children[start], part.children[end]] = points
        part.width = width + 2 * AROUND
        part.height = height + 2 * AROUND + title


def cut(
    edges: Sequence[tuple[int, int]], layers: list[int], sizes: list[Point]
) -> dict[tuple[int, int], list[int]]:
    """The numbers of the passages of each edge, one for each layer that it passes; these are added
    to `layers` and `sizes`. There are none if they would be too many."""
    passed = sum(max(0, layers[end] - layers[start] - 1) for start, end in edges)
    found: dict[tuple[int, int], list[int]] = {}
    for start, end in edges:
        via: list[int] = []
        if passed <= MANY_PASSAGES:
            for layer in range(layers[start] + 1, layers[end]):
                via.append(len(layers))
                layers.append(layer)
                sizes.append((PASSAGE, 0.0))
        found[start, end] = via
    return found


def _rows(
    sizes: Sequence[Point], layers: Sequence[int]
) -> tuple[dict[int, tuple[float, float]], float]:
    """Top and height of each layer, and the total height."""
    heights: dict[int, float] = {}
    for size, layer in zip(sizes, layers, strict=True):
        heights[layer] = max(heights.get(layer, 0.0), size[1])
    rows: dict[int, tuple[float, float]] = {}
    top = 0.0
    for layer in sorted(heights):
        rows[layer] = top, heights[layer]
        top += heights[layer] + (BETWEEN_LAYERS if heights[layer] else BESIDE_PORTS)
    return rows, max(0.0, top - BETWEEN_LAYERS)


def spread(
    sizes: Sequence[Point], layers: Sequence[int], edges: Sequence[tuple[int, int]]
) -> list[float]:
    """The left border of each box, from 0 on: boxes of a layer do not overlap, and each is as near
    as possible to the middle of its neighbours."""
    count = len(sizes)
    columns = columns_of(layers, edges)
    rows: dict[int, list[int]] = {}
    for node in sorted(range(count), key=lambda node: columns[node]):
        rows.setdefault(layers[node], []).append(node)
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for start, end in edges:
        below[start].append(end)
        above[end].append(start)
    middles = [0.0] * count
    order = [_thin_in_the_middle(rows[layer], sizes, below) for layer in sorted(rows)]
    for row in order:
        _settle(row, [0.0] * len(row), sizes, middles)
    for sweep in range(SWEEPS if len(order) > 1 else 0):
        near = (above, below)[sweep % 2]
        last = sweep == SWEEPS - 1
        for row in order if sweep % 2 == 0 else reversed(order):
            wanted = []
            for node in row:
                others = above[node] + below[node] if last else near[node]
                each = [middles[other] for other in others]
                wanted.append(sum(each) / len(each) if each else middles[node])
            _settle(row, wanted, sizes, middles)
    least = min((middles[node] - sizes[node][0] / 2 for node in range(count)), default=0.0)
    return [middles[node] - sizes[node][0] / 2 - least for node in range(count)]


def _thin_in_the_middle(
    row: Sequence[int], sizes: Sequence[Point], below: Sequence[Sequence[int]]
) -> list[int]:
    """A row in which passing edges are moved between neighbouring boxes that lead to the same box.
    This crosses no edges and makes the paths straighter."""
    found: list[int] = []
    for _, run in groupby(row, key=lambda node: tuple(below[node])):
        nodes = list(run)
        thin = [node for node in nodes if sizes[node][0] == PASSAGE]
        wide = [node for node in nodes if sizes[node][0] != PASSAGE]
        half = len(wide) // 2
        found += [*wide[:half], *thin, *wide[half:]] if len(below[nodes[0]]) == 1 else nodes
    return found


def _settle(
    row: Sequence[int], wanted: Sequence[float], sizes: Sequence[Point], middles: list[float]
) -> None:
    """Place the boxes of a row near their desired positions, in order and without overlap.

    This minimizes squared distances by isotonic regression, with pooling of adjacent violators.
    """
    offsets = [0.0]
    for left, right in pairwise(row):
        apart = (sizes[left][0] + sizes[right][0]) / 2 + BETWEEN_BOXES
        offsets.append(offsets[-1] + apart)
    pools: list[tuple[float, int]] = []  # sum, and number of boxes
    for want, offset in zip(wanted, offsets, strict=True):
        total, count = want - offset, 1
        while pools and pools[-1][0] * count >= total * pools[-1][1]:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    place = 0
    for total, count in pools:
        for _ in range(count):
            middles[row[place]] = total / count + offsets[place]
            place += 1
