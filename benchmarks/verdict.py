"""A summary of the figures: a verdict in words, the rows where plugrad is slower, and a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import groupby

from benchmarks.measure import TORCH, Row
from tools import svg_dark

# A ratio up to this counts as equally fast.
ALIKE = 1.05

# The picture, in pixels: the names' column, a line's height, and the axis.
NAMES, LINE, AXIS, MARGIN = 130, 26, 620, 16
LOWEST, HIGHEST = 0.1, 10.0
FONT = "font-family='Helvetica, Arial, sans-serif'"
FASTER, SLOWER, GREY = "#15803d", "#c2410c", "#6b7280"


def compared(rows: Sequence[Row]) -> list[Row]:
    """The rows with figures of both plugrad and PyTorch."""
    return [row for row in rows if TORCH in row.ratios]


def verdict(rows: Sequence[Row], picture: str) -> str:
    """The page's first section; `picture` is the path of the picture relative to the page."""
    found = compared(rows)
    if not found:
        return ""
    ratios = [row.ratios[TORCH].median for row in found]
    fewer = sum(ratio < 1 / ALIKE for ratio in ratios)
    alike = sum(1 / ALIKE <= ratio <= ALIKE for ratio in ratios)
    lines = [
        "## In short",
        "",
        f"PyTorch has {len(found)} of these rows, too. plugrad needs less in {fewer} of them, the "
        f"same within five percent in {alike}, and more in {len(found) - fewer - alike}. Each dot "
        "is a row.",
        "",
        f"![Ratios to PyTorch's time, by benchmark]({picture})",
        "",
        "| benchmark | rows | less than PyTorch | geometric mean of the ratios | most |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    for name, group in groupby(found, key=lambda row: row.benchmark):
        own = list(group)
        values = [row.ratios[TORCH].median for row in own]
        worst = max(own, key=lambda row: row.ratios[TORCH].median)
        mean = math.exp(sum(map(math.log, values)) / len(values))
        lines.append(
            f"| {name} | {len(own)} | {sum(value < 1 for value in values)} | {mean:.2f} "
            f"| {worst.case}: {worst.ratios[TORCH].median:.3g} |"
        )
    slower = sorted(
        (row for row in found if row.ratios[TORCH].median > ALIKE),
        key=lambda row: -row.ratios[TORCH].median,
    )
    if slower:
        named = "; ".join(f"{row.case} {row.ratios[TORCH].median:.2g}" for row in slower)
        lines += ["", f"**Slower than PyTorch**, and how many times: {named}."]
    return "\n".join(lines) + "\n"


def draw(rows: Sequence[Row]) -> str:
    """An SVG with a line for each benchmark and a dot for each row, on an axis of ratios."""
    groups = [
        (name, list(group))
        for name, group in groupby(compared(rows), key=lambda row: row.benchmark)
    ]
    width, height = NAMES + AXIS + 2 * MARGIN, LINE * len(groups) + 64
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' "
        f"width='{width}' height='{height}' role='img'>",
        "<title>Ratios of plugrad's time to PyTorch's, by benchmark</title>",
        svg_dark.style(),
        f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
    ]
    bottom = height - 40
    for mark in (0.1, 0.2, 0.5, 1, 2, 5, 10):
        x = _place(mark)
        color, stroke = ("#111827", 1.6) if mark == 1 else ("#e5e7eb", 1)
        parts.append(
            f"<line x1='{x:.0f}' y1='12' x2='{x:.0f}' y2='{bottom}' stroke='{color}' "
            f"stroke-width='{stroke}'/>"
        )
        parts.append(_text(x, bottom + 14, f"{mark:g}", "middle"))
    parts.append(_text(_place(1) - 8, height - 8, "faster than PyTorch", "end", FASTER))
    parts.append(_text(_place(1) + 8, height - 8, "slower", "start", SLOWER))
    for number, (name, own) in enumerate(groups):
        y = 12 + LINE * number + LINE / 2
        parts.append(_text(MARGIN + NAMES - 12, y + 4, name, "end", "#111827"))
        for row in own:
            ratio = row.ratios[TORCH].median
            color = FASTER if ratio <= 1 else SLOWER
            parts.append(
                f"<circle cx='{_place(ratio):.1f}' cy='{y:.0f}' r='5' fill='{color}' "
                f"fill-opacity='0.45'><title>{escape(row.case)}: {ratio:.3g}</title></circle>"
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _place(ratio: float) -> float:
    inside = min(max(ratio, LOWEST), HIGHEST)
    share = math.log(inside / LOWEST) / math.log(HIGHEST / LOWEST)
    return MARGIN + NAMES + share * AXIS


def _text(x: float, y: float, text: str, anchor: str, color: str = GREY) -> str:
    return (
        f"<text x='{x:.0f}' y='{y:.0f}' font-size='12' fill='{color}' text-anchor='{anchor}' "
        f"{FONT}>{escape(text)}</text>"
    )
