"""The colours of pictures on dark pages: a style that every picture of docs/ contains.

Attributes in pictures give the colours for light pages. The style replaces them if the reader's
system, or the site's switch, selects dark.
"""

from __future__ import annotations

DARK = {
    # Paper, ink and lines.
    "#ffffff": "#1e2129",
    "#111827": "#f3f4f6",
    "#374151": "#d1d5db",
    "#4b5563": "#9ca3af",
    "#6b7280": "#a3a9b5",
    "#9ca3af": "#6b7280",
    "#e5e7eb": "#3b4150",
    # Fills of boxes, and the strokes that go with them.
    "#f3f4f6": "#2b303b",
    "#dbeafe": "#1b2f55",
    "#1d4ed8": "#7aa7ff",
    "#fef3c7": "#47350f",
    "#b45309": "#f0b35a",
    "#dcfce7": "#143a25",
    "#15803d": "#4ade80",
    "#ffedd5": "#4a2513",
    "#c2410c": "#fb8a52",
    "#ede9fe": "#33285c",
    "#6d28d9": "#b794f6",
}


def style() -> str:
    """The element to insert after the title of a picture."""
    rules = [
        f"[{name}='{a}']{{{name}:{b}}}" for a, b in DARK.items() for name in ("fill", "stroke")
    ]
    return f"<style>@media (prefers-color-scheme:dark){{{''.join(rules)}}}</style>"
