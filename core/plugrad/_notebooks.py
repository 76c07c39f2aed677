"""Displays tensors as tables, graphs as pictures or lists, and profiles as tables in notebooks.

Colours and fonts come from the notebook, so displays are readable in light and dark themes.
"""

from __future__ import annotations

# Interpreted: only notebooks import it.
import html
import sys
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from plugrad.errors import PluginError

# Rows and columns of a table; of longer axes, as many from each end as half of it.
MOST: Final = 12
# Nodes of a graph in a list.
MOST_NODES: Final = 50
# A graph with more nodes is listed instead of drawn, because a cell cannot show it.
MOST_DRAWN: Final = 300

_CELL: Final = "padding:1px 7px;text-align:right;font-family:monospace;border:0"
_HEAD: Final = f"{_CELL};opacity:.55;font-weight:normal"
_GAP: Final = "…"


def tensor_html(tensor: Any) -> str:
    """A caption and, for one or two dimensions, a table of the elements; else a summary."""
    caption = _caption(tensor)
    try:
        plain = tensor.detach()
        if plain.is_meta:
            body = ""
        elif plain.dim() == 0:
            body = _pre(_shown(plain.item()))
        elif plain.dim() <= 2 and plain.numel():
            body = _table(plain)
        else:
            body = _summary(plain)
    except (NotImplementedError, RuntimeError, TypeError):
        # Its elements cannot be read, as within vmap; its repr describes it.
        body = _pre(repr(tensor))
    return f"<div><div style='opacity:.75'>{caption}</div>{body}</div>"


def profile_html(profile: Any) -> str:
    """The profile's table, which scrolls sideways where it does not fit."""
    return _pre(str(profile))


def graph_html(graph: Any) -> str:
    """A captured graph: as plugrad.viewer draws it, where that is installed, and its listing."""
    return _listing(repr(graph), str(graph), _picture(graph, len(graph.nodes)))


def node_html(node: Any) -> str:
    """A node of the autograd graph and those that backward runs after it: a picture, where
    plugrad.viewer is installed, and a list."""
    lines: list[str] = []
    seen = {id(node)}
    level: deque[tuple[Any, int]] = deque([(node, 0)])
    count = 0
    while level and count <= MOST_DRAWN:
        current, depth = level.popleft()
        count += 1
        if count <= MOST_NODES:
            lines.append("  " * depth + current.name())
        for following, _ in current.next_functions:
            if following is not None and id(following) not in seen:
                seen.add(id(following))
                level.append((following, depth + 1))
    if count > MOST_NODES:
        lines.append("…")
    known = f"more than {MOST_DRAWN}" if level else str(count)
    return _listing(f"{node.name()}: {known} nodes", "\n".join(lines), _picture(node, count))


def _listing(title: str, text: str, picture: str) -> str:
    """Text under its title, folded where there is a picture."""
    state = "" if picture else " open"
    return f"<details{state}><summary>{html.escape(title)}</summary>{_pre(text)}</details>{picture}"


def _picture(graph: Any, nodes: int) -> str:
    """A graph as plugrad.viewer draws it; empty if that is not installed or the graph is large."""
    if nodes > MOST_DRAWN:
        return ""
    try:
        viewer: Any = sys.modules["plugrad"].viewer
    except (AttributeError, ImportError, PluginError):  # it is not installed, or cannot be used
        return ""
    drawn: str = viewer.draw(graph)._repr_html_()
    return drawn


def _pre(text: str) -> str:
    return f"<pre style='overflow:auto;margin:2px 0'>{html.escape(text)}</pre>"


def _caption(tensor: Any) -> str:
    shape = " × ".join(map(str, tensor.shape)) or "scalar"
    facts = [type(tensor).__name__, str(tensor.dtype).rpartition(".")[2], shape, str(tensor.device)]
    if tensor.grad_fn is not None:
        facts.append(f"grad_fn={tensor.grad_fn.name()}")
    elif tensor.requires_grad:
        facts.append("requires grad")
    return " · ".join(html.escape(fact) for fact in facts)


def _places(length: int) -> list[int | None]:
    """The indices along an axis that are shown; None stands for the omitted ones."""
    if length <= MOST:
        return list(range(length))
    half = MOST // 2
    return [*range(half), None, *range(length - half, length)]


def _table(tensor: Any) -> str:
    is_matrix = tensor.dim() == 2
    columns = _places(tensor.shape[-1])
    labels = [_place(column) for column in columns]
    rows = [_row("th", _HEAD, ["", *labels] if is_matrix else labels)]
    for place in _places(tensor.shape[0] if is_matrix else 1):
        if place is None:
            cells = [_GAP] * len(columns)
        else:
            cells = _cells(tensor[place] if is_matrix else tensor, columns)
        label = _row("th", _HEAD, [_place(place)], whole=False) if is_matrix else ""
        rows.append(f"<tr>{label}{_row('td', _CELL, cells, whole=False)}</tr>")
    table = (
        f"<table style='width:auto;margin:2px 0;border-collapse:collapse'>{''.join(rows)}</table>"
    )
    return f"<div style='overflow:auto'>{table}</div>"


def _row(tag: str, style: str, cells: Sequence[str], whole: bool = True) -> str:
    text = "".join(f"<{tag} style='{style}'>{cell}</{tag}>" for cell in cells)
    return f"<tr>{text}</tr>" if whole else text


def _place(place: int | None) -> str:
    return _GAP if place is None else str(place)


def _cells(row: Any, columns: Sequence[int | None]) -> list[str]:
    ends = [row[: MOST // 2], row[-(MOST // 2) :]] if None in columns else [row]
    values = [value for end in ends for value in end.tolist()]
    found = iter(values)
    return [_GAP if column is None else html.escape(_shown(next(found))) for column in columns]


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float | complex) else str(value)


def _summary(tensor: Any) -> str:
    size = f"{tensor.numel():,} elements, {tensor.numel() * tensor.element_size():,} bytes"
    if not tensor.numel() or tensor.is_complex() or str(tensor.dtype).endswith("bool"):
        return _pre(size)
    values = {"min": tensor.min(), "max": tensor.max(), "mean": tensor.double().mean()}
    told = ", ".join(f"{name} {_shown(value.item())}" for name, value in values.items())
    return _pre(f"{size}\n{told}")
