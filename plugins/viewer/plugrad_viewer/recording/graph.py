"""The nodes of the graph as a recording knows them: numbered when they are first seen.

A node is not kept alive for it. It carries its own number, among its notes.
"""

from __future__ import annotations

from types import FrameType
from typing import Any, Final

from plugrad.plugins.watching import (
    edges_of,
    leaf_of,
    name_of,
    notes_of,
    output_of,
    saved_by,
    sizes_of,
)
from plugrad_viewer.recording.format import Node, Saved
from plugrad_viewer.recording.names import Names

ROOT: Final = "GraphRoot"


class Graph:
    """Nodes, each once.

    Attributes:
        nodes: what is known of each.
        saved_bytes: of each, how many bytes it has saved.
    """

    def __init__(self, names: Names) -> None:
        self.nodes: list[Node] = []
        self.saved_bytes: list[int] = []
        self._names = names
        # Keys among a node's notes: its number; the call and the module that made it.
        self._number = object()
        self._maker = object()

    def number(self, node: Any) -> int:
        """The number of a node, or -1."""
        number: int = notes_of(node).get(self._number, -1)
        return number

    def claim(self, node: Any, call: int, module: int) -> None:
        """Say who makes a node that is not in the graph yet."""
        notes_of(node)[self._maker] = call, module

    def add(self, node: Any, call: int, module: int, frame: FrameType | None) -> list[int]:
        """Number a node, and those it leads to that have no number.

        Returns the new numbers: those that others lead to come first.
        """
        first = len(self.nodes)
        waiting = [(self._append(node, call, module, frame), node)]
        while waiting:
            number, each = waiting.pop()
            edges = self.nodes[number]["edges"]
            for function, input_nr in edges_of(each):
                if function is None:
                    continue
                target = notes_of(function).get(self._number)
                if target is None:
                    target = self._append(function, call, module, frame)
                    waiting.append((target, function))
                edges.append([target, input_nr])
        return list(range(len(self.nodes) - 1, first - 1, -1))

    def _append(self, node: Any, call: int, module: int, frame: FrameType | None) -> int:
        notes = notes_of(node)
        number = notes[self._number] = len(self.nodes)
        name = name_of(node)
        leaf = leaf_of(node)
        shape: tuple[int, ...] = ()
        label = ""
        if leaf is not None:
            kind, shape = "leaf", sizes_of(leaf)
            label = self._names.find(leaf, frame)
            call = -1
        else:
            kind = "root" if name == ROOT else "function"
            call, module = notes.pop(self._maker, (call, module))
            about = output_of(node)
            if about is not None:
                shape = about[0]
        saved = [saved_entry(what, value) for what, value in saved_by(node)]
        self.saved_bytes.append(sum(entry["bytes"] for entry in saved))
        self.nodes.append(
            {
                "name": name,
                "call": call,
                "module": module,
                "kind": kind,
                "label": label,
                "shape": list(shape),
                "edges": [],
                "saved": saved,
                "x": 0.0,
                "y": 0.0,
            }
        )
        return number


def saved_entry(name: str, value: Any) -> Saved:
    """What a node has saved: a tensor, or what a pack hook has made of one."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return {"name": name, "shape": [], "dtype": "", "bytes": 0}
    shape = tuple(value.shape)
    return {"name": name, "shape": list(shape), "dtype": name_of_dtype(dtype), "bytes": size(value)}


def name_of_dtype(dtype: Any) -> str:
    """``float32`` for `plugrad.float32` and for an array's dtype."""
    return str(dtype).rpartition(".")[2]


def size(tensor: Any) -> int:
    """The bytes of a tensor's elements, whether they share memory or not; 0 for none."""
    return 0 if tensor is None else int(tensor.nbytes)
