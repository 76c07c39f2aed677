"""A laid-out picture as SVG: readable on light and dark backgrounds, with text for screen
readers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from html import escape
from typing import Final

from plugrad_viewer.drawing.picture import LINE, PADDING, Picture
from plugrad_viewer.drawing.places import Places, Point

STYLE: Final = """
.pg{--ink:#1f2328;--paper:#fff;--soft:#59636e;--line:#818b98;--function:#eef2ff;--leaf:#dcfce7;\
--input:#e0f2fe;--module:#fef3c7;--root:#f3e8ff;--group:#afb8c133;--group-line:#afb8c1;\
font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;background:var(--paper)}
@media (prefers-color-scheme:dark){.pg{--ink:#e6edf3;--paper:#0d1117;--soft:#9198a1;\
--line:#7d8590;--function:#1f2a48;--leaf:#12351f;--input:#0c2d48;--module:#3a2d0a;--root:#2f1d45;\
--group:#30363d55;--group-line:#4a525c}}
.pg text{fill:var(--ink)}.pg .s{fill:var(--soft)}
.pg .b rect{stroke:var(--line);rx:4px}
.pg .function rect{fill:var(--function)}.pg .leaf rect{fill:var(--leaf)}
.pg .input rect{fill:var(--input)}.pg .module rect{fill:var(--module);stroke-width:1.5}
.pg .root rect{fill:var(--root)}
.pg .g rect{fill:var(--group);stroke:var(--group-line);rx:6px}
.pg .e{fill:none;stroke:var(--line)}.pg marker path{fill:var(--line)}
.pg .b:hover rect,.pg .g:hover>rect{stroke:var(--ink);stroke-width:2}
"""
_numbers = itertools.count()


def svg(picture: Picture, places: Places, title: str, about: str) -> str:
    """The text of an SVG document, or part of an HTML one.

    Args:
        title: the tooltip, which screen readers read first.
        about: a description of the picture's contents.
    """
    number = next(_numbers)  # a page may have several
    width, height = round(places.width), round(places.height)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="pg" role="img" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" '
        f'aria-labelledby="pg{number}t pg{number}d">',
        f'<title id="pg{number}t">{escape(title)}</title>',
        f'<desc id="pg{number}d">{escape(about)}</desc>',
        f"<style>{STYLE}</style>",
        f'<defs><marker id="pg{number}a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>',
    ]
    for group, (x, y, wide, tall) in zip(picture.groups, places.groups, strict=True):
        parts.append(
            f'<g class="g"><title>{escape(f"{group.title} ({group.kind})")}</title>'
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}"/>'
            f'<text x="{x + 8:.1f}" y="{y + 16:.1f}">{escape(group.title)} '
            f'<tspan class="s">{escape(group.kind)}</tspan></text></g>'
        )
    arrow = f"url(#pg{number}a)"
    parts += [f'<path class="e" marker-end="{arrow}" d="{_curve(path)}"/>' for path in places.paths]
    for box, (x, y, wide, tall) in zip(picture.boxes, places.boxes, strict=True):
        middle = x + wide / 2
        words = "".join(
            f'<text{" class=s" if row else ""} x="{middle:.1f}" '
            f'y="{y + PADDING / 2 + LINE * (row + 0.75):.1f}" text-anchor="middle">'
            f"{escape(line)}</text>"
            for row, line in enumerate(box.lines)
        ).replace("class=s", 'class="s"')
        parts.append(
            f'<g class="b {box.kind}"><title>{escape(box.about)}</title>'
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}"/>{words}</g>'
        )
    return "\n".join([*parts, "</svg>"])


def _curve(points: Sequence[Point]) -> str:
    """A path through points that leaves and reaches each of them upright."""
    x, y = points[0]
    path = [f"M{x:.1f} {y:.1f}"]
    for right, below in points[1:]:
        if abs(right - x) < 0.05:
            path.append(f"V{below:.1f}")
        else:
            half = (y + below) / 2
            path.append(f"C{x:.1f} {half:.1f} {right:.1f} {half:.1f} {right:.1f} {below:.1f}")
        x, y = right, below
    return "".join(path)
