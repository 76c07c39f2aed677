"""Nodes of the graph as data, from the core's book."""

from __future__ import annotations

from typing import Any, Final

from plugrad_viewer.recording.format import Node, Saved

ROOT: Final = "GraphRoot"
_dtypes: Final[dict[Any, str]] = {}

# Of AccumulateGrad.
_HIGHEST: Final = (1 << 64) - 1

# Name, sizes, dtype, bytes and version of a tensor that a node has saved.
Kept = tuple[str, tuple[int, ...], Any, int, int]


def entry(
    name: str,
    label: str | None,
    shape: tuple[int, ...],
    edges: list[list[int]],
    kept: list[Kept],
    sequence: int = -1,
    call: int = -1,
    module: int = -1,
) -> Node:
    """A node as data, made in a call and a module; those with a label are leaves."""
    kind = "leaf" if label is not None else "root" if name == ROOT else "function"
    saved: list[Saved] = [
        {
            "name": each,
            "shape": list(sizes),
            "dtype": "" if dtype is None else name_of_dtype(dtype),
            "bytes": nbytes,
            "version": version,
        }
        for each, sizes, dtype, nbytes, version in kept
    ]
    return {
        "name": name,
        "call": -1 if label is not None else call,
        "module": module,
        "kind": kind,
        "label": label or "",
        "shape": list(shape),
        "edges": edges,
        "saved": saved,
        "sequence": -1 if sequence == _HIGHEST else sequence,
        "x": 0.0,
        "y": 0.0,
    }


def name_of_dtype(dtype: Any) -> str:
    """``float32`` for `plugrad.float32` and for an array's dtype."""
    name = _dtypes.get(dtype)
    if name is None:
        name = _dtypes[dtype] = str(dtype).rpartition(".")[2]
    return name
