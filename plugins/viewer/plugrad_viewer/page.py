"""The page: one HTML file with program, styles and recording, which needs no network."""

from __future__ import annotations

import base64
import functools
import gzip
import html
import json
from collections.abc import Mapping
from importlib import resources
from typing import Final

__all__ = ["page"]

BUILT: Final = "_page"
BUILD_COMMAND: Final = "python plugins/viewer/bundle.py"
# Shorter recordings stay readable in the source of the page.
COMPRESS_FROM: Final = 64 * 1024
# The browser itself blocks loading anything from elsewhere.
POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
)
TEMPLATE: Final = """<!doctype html>
<html lang="en" data-theme="light">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<div id="viewer"><p class="loading">Reading the recording …</p></div>
<noscript><p class="loading">This page needs JavaScript.</p></noscript>
<script id="recording" type="{kind}"{encoding}>{recording}</script>
<script>{script}</script>
</body>
</html>
"""


def page(data: Mapping[str, object]) -> str:
    """One self-contained HTML page that replays a recording, or shows a graph.

    Args:
        data: the recording, in JSON's types. Without events, the page shows only the graph.

    Returns:
        The text of the page. Nothing in it is loaded from elsewhere, so it opens from disk.

    Raises:
        FileNotFoundError: in a source checkout in which the page's program has not been built.
        ValueError: `data` has numbers that JSON lacks: infinite, or not a number.

    >>> from plugrad_viewer.page import page
    >>> recording = {
    ...     "version": 1, "about": {"title": "A graph"}, "sources": [], "modules": [],
    ...     "threads": [], "calls": [], "events": [],
    ...     "nodes": [{"name": "ExpBackward0", "call": -1, "module": -1, "kind": "root",
    ...                "label": "", "shape": [2], "edges": [], "saved": [], "x": 0, "y": 0}],
    ... }
    >>> text = page(recording)
    >>> text.startswith("<!doctype html>"), "<title>A graph</title>" in text
    (True, True)
    """
    about = data.get("about")
    title = str(about.get("title", "")) if isinstance(about, Mapping) else ""
    kind, encoding, recording = _embedded(data)
    return TEMPLATE.format(
        policy=POLICY,
        title=html.escape(title or "plugrad"),
        style=_built("viewer.css"),
        kind=kind,
        encoding=encoding,
        recording=recording,
        script=_built("viewer.js"),
    )


def _embedded(data: Mapping[str, object]) -> tuple[str, str, str]:
    """The type, the encoding attribute and the text of the element that holds the recording."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    if len(text) >= COMPRESS_FROM:
        packed = gzip.compress(text.encode(), compresslevel=6, mtime=0)
        return "text/plain", ' data-encoding="gzip"', base64.b64encode(packed).decode()
    # A "<" could begin "</script>" or "<!--", which would end the element or hide its end.
    return "application/json", "", text.replace("<", "\\u003c")


@functools.cache
def _built(name: str) -> str:
    """A file that bundle.py built from page/."""
    file = resources.files(__package__) / BUILT / name
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"the viewer's page has not been built: {BUILT}/{name} is missing in the package "
            f"{__package__}. In a source checkout, `{BUILD_COMMAND}` builds it; it needs Node.js"
        ) from None
