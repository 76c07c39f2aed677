"""The colours of the pictures on a dark page: a style that every picture of docs/ contains.

Pictures name their colours for light pages, as attributes. The style replaces them where the
reader, or the switch of the site, prefers dark.
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
    """The element to stand behind the title of a picture."""
    rules = [
        f"[{name}='{a}']{{{name}:{b}}}" for a, b in DARK.items() for name in ("fill", "stroke")
    ]
    return f"<style>@media (prefers-color-scheme:dark){{{''.join(rules)}}}</style>"
