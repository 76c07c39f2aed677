"""A module in notebooks: a collapsible tree with the numbers of parameters."""

from __future__ import annotations

import html
from typing import Any


def module_html(module: Any) -> str:
    """The tree of a module; colours and fonts are the notebook's own.

    >>> from plugrad import nn
    >>> text = nn.Sequential(nn.Linear(2, 3), nn.ReLU())._repr_html_()
    >>> "Linear" in text, "9 parameters" in text
    (True, True)
    """
    return f"<div style='font-family:monospace'>{_tree(module, '', 0)}</div>"


def _tree(module: Any, name: str, depth: int) -> str:
    line = _line(module, name)
    children = list(module._modules.items())
    if not children:
        return f"<div style='margin-left:1.2em'>{line}</div>" if depth else f"<div>{line}</div>"
    inner = "".join(
        _tree(child, str(key), depth + 1) for key, child in children if child is not None
    )
    # The outermost two levels are open: more of a large model would be unreadable.
    is_open = " open" if depth < 2 else ""
    margin = "margin-left:1.2em" if depth else ""
    return f"<details{is_open} style='{margin}'><summary>{line}</summary>{inner}</details>"


def _line(module: Any, name: str) -> str:
    title = html.escape(module._get_name())
    extra = html.escape(" ".join(module.extra_repr().split()))
    label = f"<span style='opacity:.6'>{html.escape(name)}:</span> " if name else ""
    count = sum(parameter.numel() for parameter in module.parameters())
    unit = "parameter" if count == 1 else "parameters"
    counted = f" <span style='opacity:.6'>{count:,} {unit}</span>" if count else ""
    return f"{label}<b>{title}</b>{f'({extra})' if extra else ''}{counted}"
