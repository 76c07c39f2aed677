"""A profile as one page of HTML: a flame graph for each thread, and the memory held over time.

It loads no other files, so it opens from disk. Widths are percentages of the time, so the slider
zooms by making the picture wider.
"""

from __future__ import annotations

# Interpreted: it runs when a profile is over.
import html
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from plugrad.autograd.profiler.chrome_trace import TraceContext
from plugrad.autograd.profiler.formatting import format_memory, format_time

ROW: Final = 18
MEMORY_HEIGHT: Final = 120

_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Profile</title>
<style>
:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; --light: 78%; }}
@media (prefers-color-scheme: dark) {{ :root {{ --light: 32%; }} }}
body {{ margin: 1rem; }}
h1 {{ font-size: 1.2rem; }} h2 {{ font-size: 1rem; margin-bottom: .3rem; }}
.scroll {{ overflow-x: auto; border: 1px solid #8885; }}
.scroll > svg {{ display: block; min-width: 100%; }}
text {{ font: 11px system-ui, sans-serif; fill: currentColor; }}
rect {{ stroke: #8888; stroke-width: .5; }}
polyline {{ fill: #4a90d955; stroke: #4a90d9; vector-effect: non-scaling-stroke; }}
</style>
<h1>Profile: {total} of operators</h1>
<p><label>Zoom <input type="range" min="100" max="5000" value="100" id="zoom"></label>
Point at a bar to read its name and times.</p>
{body}
<script>
const pictures = document.querySelectorAll(".scroll > svg");
document.getElementById("zoom").addEventListener("input", (event) => {{
  for (const picture of pictures) picture.style.width = event.target.value + "%";
}});
</script>
</html>
"""


def write_page(path: str, events: Sequence[Any], context: TraceContext) -> None:
    """Write the page of `FunctionEvent`s; times are microseconds since profiling began."""
    times = [time for event in events for time in (event.time_range.start, event.time_range.end)]
    times += [time for time, _ in context.memory]
    begin, end = min(times, default=0.0), max(times, default=1.0)
    parts = []
    for number in sorted({event.thread for event in events}):
        _, name = context.threads.get(number, (number, f"thread {number}"))
        shown = [event for event in events if event.thread == number and not event.is_async]
        parts.append(f"<h2>{html.escape(name)}</h2>{_flames(shown, begin, end)}")
    if context.memory:
        most = max(held for _, held in context.memory)
        title = f"<h2>Memory of results, at most {format_memory(most)}</h2>"
        parts.append(title + _memory(context.memory, begin, end))
    total = format_time(sum(event.self_cpu_time_total for event in events))
    Path(path).write_text(_PAGE.format(total=total, body="\n".join(parts)), encoding="utf-8")


def _flames(events: Sequence[Any], begin: float, end: float) -> str:
    depths: dict[int, int] = {}
    bars = "".join(_bars(events, begin, end - begin or 1.0, depths))
    height = ROW * (max(depths.values(), default=0) + 1)
    return f'<div class="scroll"><svg width="100%" height="{height}">{bars}</svg></div>'


def _bars(
    events: Sequence[Any], begin: float, length: float, depths: dict[int, int]
) -> Iterator[str]:
    """A bar for each event, below the one within which it ran."""
    for event in sorted(events, key=lambda one: (one.time_range.start, -one.time_range.end)):
        parent = event.cpu_parent
        depth = 0 if parent is None else depths.get(id(parent), -1) + 1
        depths[id(event)] = depth
        x = 100 * (event.time_range.start - begin) / length
        width = max(100 * event.time_range.elapsed_us() / length, 0.01)
        name = html.escape(event.name)
        times = f"{format_time(event.cpu_time_total)}, {format_time(event.self_cpu_time_total)}"
        hue = zlib.crc32(event.name.encode()) % 360
        yield (
            f'<svg x="{x:.4f}%" y="{ROW * depth}" width="{width:.4f}%" height="{ROW}">'
            f"<title>{name}: {times} of its own</title>"
            f'<rect width="100%" height="{ROW}" style="fill: hsl({hue} 60% var(--light))"/>'
            f'<text x="3" y="13">{name}</text></svg>'
        )


def _memory(memory: Sequence[tuple[float, int]], begin: float, end: float) -> str:
    length, most = end - begin or 1.0, max(held for _, held in memory) or 1
    points, before = ["0,100"], 0.0
    for time, held in memory:
        x = 1000 * (time - begin) / length
        points += [f"{x:.2f},{100 - before:.2f}"]
        before = 100 * held / most
        points += [f"{x:.2f},{100 - before:.2f}"]
    points += [f"1000,{100 - before:.2f}", "1000,100"]
    return (
        f'<div class="scroll"><svg width="100%" height="{MEMORY_HEIGHT}" viewBox="0 0 1000 100" '
        f'preserveAspectRatio="none"><polyline points="{" ".join(points)}"/></svg></div>'
    )
