"""The nodes of the graph as a recording knows them: numbered when they are first seen.

A node is not kept alive for it. It carries its own number, among its notes.
"""

from __future__ import annotations

from types import FrameType
from typing import Any, Final, NamedTuple

from plugrad.plugins.watching import (
    edges_of,
    leaf_of,
    name_of,
    note_of,
    notes_of,
    output_of,
    saved_by,
    sizes_of,
)
from plugrad_viewer.recording.format import Node, Saved
from plugrad_viewer.recording.names import Names

ROOT: Final = "GraphRoot"
_dtypes: Final[dict[Any, str]] = {}


class Seen(NamedTuple):
    """A node as it was when it was first seen.

    Attributes:
        maker: the custom Function that made it, by its number; -1 for none.
        is_leaf: whether it accumulates the gradient of a leaf; `label` is the leaf's name.
        saved: name, sizes, dtype and bytes of each saved tensor.
    """

    number: int
    name: str
    maker: int
    is_leaf: bool
    label: str
    shape: tuple[int, ...]
    edges: list[list[int]]
    saved: list[tuple[str, tuple[int, ...], Any, int]]


class Graph:
    """Gives numbers to nodes.

    Attributes:
        key: that of a node's number among its notes.
        count: how many have one.
    """

    def __init__(self, names: Names) -> None:
        self.key = object()
        self.count = 0
        self._names = names
        self._maker = object()

    def claim(self, node: Any, maker: int) -> None:
        """Say which custom Function makes a node."""
        notes_of(node)[self._maker] = maker

    def add(self, node: Any, frame: FrameType | None) -> list[Seen]:
        """Number a node, and those it leads to that have no number: these come first."""
        key = self.key
        found: list[Seen] = []
        waiting = [node]
        notes_of(node)[key] = self.count
        self.count += 1
        while waiting:
            each = waiting.pop()
            edges: list[list[int]] = []
            for function, input_nr in edges_of(each):
                if function is None:
                    continue
                target = note_of(function, key)
                if target is None:
                    target = notes_of(function)[key] = self.count
                    self.count += 1
                    waiting.append(function)
                edges.append([target, input_nr])
            found.append(self._seen(each, edges, frame))
        found.reverse()
        return found

    def _seen(self, node: Any, edges: list[list[int]], frame: FrameType | None) -> Seen:
        notes = notes_of(node)
        number = notes[self.key]
        leaf = None if edges else leaf_of(node)
        if leaf is not None:
            label = self._names.find(leaf, frame)
            return Seen(number, name_of(node), -1, True, label, sizes_of(leaf), edges, [])
        about = output_of(node)
        saved = [
            (name, sizes_of(value), value.dtype, size(value))
            if hasattr(value, "_backend_array")
            else (name, (), None, 0)
            for name, value in saved_by(node)
        ]
        maker = notes.get(self._maker, -1)
        shape = () if about is None else about[0]
        return Seen(number, name_of(node), maker, False, "", shape, edges, saved)


def entry(seen: Seen, call: int, module: int) -> Node:
    """A node as data, made in a call and a module."""
    kind = "leaf" if seen.is_leaf else "root" if seen.name == ROOT else "function"
    saved: list[Saved] = [
        {
            "name": name,
            "shape": list(shape),
            "dtype": "" if dtype is None else name_of_dtype(dtype),
            "bytes": nbytes,
        }
        for name, shape, dtype, nbytes in seen.saved
    ]
    return {
        "name": seen.name,
        "call": -1 if seen.is_leaf else call,
        "module": module,
        "kind": kind,
        "label": seen.label,
        "shape": list(seen.shape),
        "edges": seen.edges,
        "saved": saved,
        "x": 0.0,
        "y": 0.0,
    }


def name_of_dtype(dtype: Any) -> str:
    """``float32`` for `plugrad.float32` and for an array's dtype."""
    name = _dtypes.get(dtype)
    if name is None:
        name = _dtypes[dtype] = str(dtype).rpartition(".")[2]
    return name


def size(tensor: Any) -> int:
    """The bytes of a tensor's elements, whether they share memory or not; 0 for none."""
    return 0 if tensor is None else int(tensor.nbytes)
