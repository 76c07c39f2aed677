"""Turns nodes with known modules into a picture: groups for modules, or one box for each.

A module that is called twice gives two groups. Nodes are walked in the order of the program, so a
group holds what one call has made, and no group both leads to another one and follows it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from plugrad_viewer.drawing.picture import (
    Box,
    Group,
    Picture,
    in_order,
    words_for_bytes,
    words_for_shape,
)
from plugrad_viewer.drawing.places import place
from plugrad_viewer.recording.format import Module, Node

# The size of every node on the page, which writes less into it.
ON_PAGE: Final = (132.0, 34.0)


@dataclass
class _Open:
    """An open call of a module, to which nodes are added."""

    module: int
    group: int
    box: int


def picture_of(
    nodes: Sequence[Node],
    modules: Sequence[Module],
    collapse: Collection[str] = (),
    depth: int | None = None,
) -> Picture:
    """The picture of autograd nodes, or of objects like them.

    Args:
        collapse: names of modules that each become one box.
        depth: modules at this depth become one box: 0 for the outermost.
    """
    return _Builder(nodes, modules, collapse, depth).build()


class _Builder:
    def __init__(
        self,
        nodes: Sequence[Node],
        modules: Sequence[Module],
        collapse: Collection[str],
        depth: int | None,
    ) -> None:
        self.nodes = nodes
        self.modules = modules
        self.collapse = frozenset(collapse)
        self.depth = depth
        self.picture = Picture()
        self.open: list[_Open] = []
        self.boxes: dict[int, int] = {}
        # For each box of a module: the number of nodes, and the bytes saved.
        self.held: dict[int, list[int]] = {}
        self.calls: dict[int, int] = {}

    def build(self) -> Picture:
        nodes = self.nodes
        edges = list(
            {(end, start): None for start, node in enumerate(nodes) for end, _ in node["edges"]}
        )
        first_use: dict[int, list[int]] = {}
        for start, end in edges:
            if nodes[start]["kind"] in ("leaf", "input"):
                first_use.setdefault(end, []).append(start)
        seen: set[int] = set()
        for number in in_order(len(nodes), edges):
            if nodes[number]["kind"] in ("leaf", "input"):
                continue
            self._enter(nodes[number]["module"])
            for leaf in first_use.get(number, ()):  # leaves are placed with their first user
                if leaf not in seen:
                    seen.add(leaf)
                    self._add(leaf)
            self._add(number)
        self._enter(-1)
        for number in range(len(nodes)):
            if number not in self.boxes:
                self._add(number)
        lifted = {(self.boxes[start], self.boxes[end]): None for start, end in edges}
        self.picture.edges = [edge for edge in lifted if edge[0] != edge[1]]
        for box, (count, saved) in self.held.items():
            what = f"{count} nodes" + (f", saves {words_for_bytes(saved)}" if saved else "")
            self.picture.boxes[box].lines.append(what)
            self.picture.boxes[box].about += f": {what}"
        return self.picture

    def _enter(self, module: int) -> None:
        """Open the groups of a module and its ancestors, and close all others."""
        chain: list[int] = []
        while module >= 0:
            chain.append(module)
            module = self.modules[module]["parent"]
        chain.reverse()
        kept = 0
        while kept < min(len(chain), len(self.open)) and self.open[kept].module == chain[kept]:
            kept += 1
        del self.open[kept:]
        for level in range(kept, len(chain)):
            self._open(chain[level], level)

    def _open(self, module: int, level: int) -> None:
        outer = self.open[-1] if self.open else _Open(-1, -1, -1)
        if outer.box >= 0:  # inside a collapsed module
            self.open.append(_Open(module, outer.group, outer.box))
            return
        about = self.modules[module]
        times = self.calls[module] = self.calls.get(module, 0) + 1
        title = about["name"] or about["kind"]
        kind = about["kind"] if about["name"] else ""
        if times > 1:
            title += f" (call {times})"
        if about["name"] in self.collapse or (self.depth is not None and level >= self.depth):
            box = len(self.picture.boxes)
            words = f"{title} {kind}".strip()
            self.picture.boxes.append(Box([words], "module", words, outer.group))
            self.held[box] = [0, 0]
            self.open.append(_Open(module, outer.group, box))
            return
        self.picture.groups.append(Group(title, kind, outer.group))
        self.open.append(_Open(module, len(self.picture.groups) - 1, -1))

    def _add(self, number: int) -> None:
        node = self.nodes[number]
        inner = self.open[-1] if self.open else _Open(-1, -1, -1)
        if inner.box >= 0:
            self.boxes[number] = inner.box
            held = self.held[inner.box]
            held[0] += 1
            held[1] += sum(saved["bytes"] for saved in node["saved"])
            return
        self.boxes[number] = len(self.picture.boxes)
        self.picture.boxes.append(box_of(node, inner.group))


def box_of(node: Node, group: int) -> Box:
    """The text of a node."""
    shape = words_for_shape(node["shape"])
    about = [f"{node['name']}, {shape}"]
    if node["label"]:
        lines = [node["label"]]
        about.insert(0, node["label"])
    else:
        lines = [node["name"]]
    if node["kind"] != "root":
        lines.append(shape)
    saved = node["saved"]
    if saved:
        total = words_for_bytes(sum(each["bytes"] for each in saved))
        names = ", ".join(each["name"] for each in saved)
        lines.append(f"saves {names if len(names) <= 24 else f'{len(saved)} tensors'}: {total}")
        about += [
            f"saves {each['name']}: {each['dtype'] or 'packed by a hook'} "
            f"{words_for_shape(each['shape'])}, {words_for_bytes(each['bytes'])}"
            for each in saved
        ]
    return Box(lines, node["kind"], "\n".join(about), group)


def place_nodes(nodes: Sequence[Node], modules: Sequence[Module]) -> None:
    """Set the `x` and `y` of nodes for the page: leaves above the values computed from them, and
    each module's nodes apart from other modules'."""
    builder = _Builder(nodes, modules, (), None)
    picture = builder.build()
    for box in picture.boxes:
        box.size = ON_PAGE
    places = place(picture).boxes
    for number, node in enumerate(nodes):
        left, top, width, height = places[builder.boxes[number]]
        node["x"] = round(left + width / 2, 1)
        node["y"] = round(top + height / 2, 1)
