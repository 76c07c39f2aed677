"""A picture without positions: boxes, their groups, and edges between them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

# The size of the words in a box, in pixels. Text is drawn at 12 pixels; a letter is about so wide.
LETTER: Final = 6.7
LINE: Final = 15.0
PADDING: Final = 8.0


@dataclass
class Box:
    """A rectangle with text.

    Attributes:
        lines: the words.
        kind: its style: "function", "leaf", "root", "input" or "module".
        about: the text of its tooltip, also for screen readers.
        group: the number of its group; -1 for none.
        size: width and height, if the text does not determine them.
    """

    lines: list[str]
    kind: str
    about: str
    group: int = -1
    size: tuple[float, float] | None = None

    @property
    def width(self) -> float:
        if self.size is not None:
            return self.size[0]
        return max(len(line) for line in self.lines) * LETTER + 2 * PADDING

    @property
    def height(self) -> float:
        if self.size is not None:
            return self.size[1]
        return len(self.lines) * LINE + PADDING


@dataclass
class Group:
    """Boxes that belong together, such as a module's; `parent` is the group around it."""

    title: str
    kind: str
    parent: int = -1


@dataclass
class Picture:
    """The picture's contents: edges are pairs of boxes, and lead from the box that is computed
    first."""

    boxes: list[Box] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)

    def sources(self) -> frozenset[int]:
        """The leaves, which are placed next to their users."""
        ends = {end for _, end in self.edges}
        return frozenset(
            number
            for number, box in enumerate(self.boxes)
            if box.kind in ("leaf", "input") and number not in ends
        )


def in_order(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Nodes in topological order, otherwise by their numbers."""
    after: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for start, end in edges:
        after[start].append(end)
        waits[end] += 1
    ready = [node for node in range(count) if not waits[node]]
    order: list[int] = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for end in after[node]:
            waits[end] -= 1
            if not waits[end]:
                heapq.heappush(ready, end)
    return order


def words_for_bytes(count: int) -> str:
    """``1.5 kB`` for 1536."""
    if count < 1024:
        return f"{count} B"
    size = float(count)
    for unit in ("kB", "MB", "GB"):
        size /= 1024
        if size < 1024 or unit == "GB":
            break
    return f"{size:.1f} {unit}" if size < 10 else f"{size:.0f} {unit}"


def words_for_shape(shape: Sequence[int]) -> str:
    """``2 × 3``; ``scalar`` for no dimensions."""
    return " × ".join(map(str, shape)) if shape else "scalar"
