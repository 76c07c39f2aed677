"""Draws the curves of docs/scaling.md and writes its tables: `python tools/scaling.py`.

They are predictions from the profiles and costs that
`python -m benchmarks.processes.scaling --json` left in a folder of docs/results, and from the
networks assumed here. The tests compare the files with the output of this module.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from plugrad.distributed.simulate import (
    Costs,
    DataParallel,
    FullySharded,
    Pipeline,
    Prediction,
    Profile,
    TensorParallel,
    simulate,
)

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import svg_dark  # noqa: E402  # beside this file, which is run by its path

PAGE = ROOT / "docs" / "scaling.md"
FOLDER = ROOT / "docs" / "pictures"
MEASURED = ROOT / "docs" / "results" / "2026-11-28-scaling"
MODELS = {
    "mlp": "MLP, 784-1024-1024-1024-10, batch 128 on each data parallel rank",
    "cnn": "CNN of three convolutions on 32 x 32 images, batch 32 on each data parallel rank",
    "transformer": "Transformer of two blocks of width 256, 8 x 64 tokens on each rank",
}
RANKS = [2**n for n in range(13)]
# Machines like the measured one, which has two cores.
PER_MACHINE = 2


class Network(NamedTuple):
    """The assumed network between machines: seconds per message, bytes per second."""

    name: str
    latency: float
    bandwidth: float
    dashes: str


NETWORKS = [
    Network("10 Gbit/s, 20 us", 20e-6, 1.25e9, ""),
    Network("200 Gbit/s, 2 us", 2e-6, 25e9, " stroke-dasharray='5 4'"),
]
STRATEGIES = {
    "data parallel": (DataParallel(), "#1d4ed8"),
    "fully sharded": (FullySharded(), "#15803d"),
    "data + tensor x2": ([DataParallel(), TensorParallel(2)], "#c2410c"),
    "data + pipeline x4": ([DataParallel(), Pipeline(4, 8)], "#6d28d9"),
}
LEFT, TOP, WIDE, HIGH, LEGEND = 52, 36, 520, 260, 180
FONT = "font-family='Helvetica, Arial, sans-serif'"


def measured() -> Any:
    """The benchmark's results: its conditions, and a row for each case."""
    return json.loads((MEASURED / "measured.json").read_text(encoding="utf-8"))


def curve(model: str, strategy: str, network: Network) -> list[Prediction]:
    """Predictions for all numbers of ranks that make up the strategy's mesh."""
    profile = Profile.load(MEASURED / f"{model}.json")
    contention = next(row["contention"] for row in measured()["rows"] if row["model"] == model)
    costs = replace(Costs.load(MEASURED / "costs.json"), contention=contention)
    costs = costs.with_network(network.latency, network.bandwidth)
    parts = STRATEGIES[strategy][0]
    least = {"data + tensor x2": 2, "data + pipeline x4": 4}.get(strategy, 1)
    return [
        simulate(profile, parts, ranks, costs, ranks_per_machine=PER_MACHINE)
        for ranks in RANKS
        if ranks >= least
    ]


def _place(ranks: int, efficiency: float) -> tuple[float, float]:
    x = LEFT + WIDE * math.log2(ranks) / math.log2(RANKS[-1])
    return x, TOP + HIGH * (1 - min(efficiency, 1.2) / 1.2)


def _text(x: float, y: float, text: str, anchor: str = "middle", color: str = "#374151") -> str:
    return (
        f"<text x='{x:.0f}' y='{y:.0f}' font-size='12' fill='{color}' text-anchor='{anchor}' "
        f"{FONT}>{escape(text)}</text>"
    )


def _line(points: Sequence[tuple[float, float]], color: str, more: str = "") -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f"<polyline points='{path}' fill='none' stroke='{color}' stroke-width='1.8'{more}/>"


def _axes() -> list[str]:
    parts = []
    for mark in range(0, 121, 20):
        _, y = _place(1, mark / 100)
        color = "#374151" if mark in (0, 100) else "#e5e7eb"
        parts.append(f"<path d='M{LEFT} {y:.1f}H{LEFT + WIDE}' stroke='{color}'/>")
        parts.append(_text(LEFT - 6, y + 4, f"{mark} %", "end"))
    for ranks in RANKS[::2]:
        x, y = _place(ranks, 0)
        parts.append(_text(x, y + 16, f"{ranks}"))
    parts.append(_text(LEFT + WIDE / 2, TOP + HIGH + 34, "ranks"))
    return parts


def draw(model: str) -> str:
    """Efficiency over ranks: batches per second and rank, relative to one rank alone."""
    width, height = LEFT + WIDE + LEGEND, TOP + HIGH + 44
    title = f"{MODELS[model]}: efficiency"
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
        f"viewBox='0 0 {width} {height}' role='img' aria-label='{escape(title)}'>",
        f"<title>{escape(title)}</title>",
        svg_dark.style(),
        f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
        _text(LEFT, 20, title, "start", "#6b7280"),
        *_axes(),
    ]
    right = LEFT + WIDE + 14
    for number, (name, (_, color)) in enumerate(STRATEGIES.items()):
        for network in NETWORKS:
            found = curve(model, name, network)
            places = [_place(row.ranks, row.efficiency) for row in found]
            parts.append(_line(places, color, network.dashes))
        y = TOP + 20 * number + 8
        parts.append(_line([(right, y), (right + 22, y)], color))
        parts.append(_text(right + 28, y + 4, name, "start"))
    for number, network in enumerate(NETWORKS, len(STRATEGIES) + 1):
        y = TOP + 20 * number + 8
        parts.append(_line([(right, y), (right + 22, y)], "#374151", network.dashes))
        parts.append(_text(right + 28, y + 4, network.name, "start"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def table(model: str) -> str:
    """What limits each strategy on 64 and 4,096 ranks, as Markdown."""
    lines = [
        "| strategy | network | step, 64 ranks | 4,096 | efficiency | MB a rank | limited by |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for name in STRATEGIES:
        for network in NETWORKS:
            rows = {row.ranks: row for row in curve(model, name, network)}
            last = rows[4096]
            limits = ", ".join(
                f"{what} {seconds / last.step_time:.0%}"
                for what, seconds in last.shares
                if what != "compute" and seconds >= 0.05 * last.step_time
            )
            lines.append(
                f"| {name} | {network.name} | {rows[64].step_time * 1e3:.1f} ms "
                f"| {last.step_time * 1e3:.1f} ms | {last.efficiency:.0%} "
                f"| {last.memory.total / 1e6:.1f} | {limits or 'compute'} |"
            )
    return "\n".join(lines)


# In the order of the page.
WAYS = ["data parallel", "fully sharded", "tensor parallel", "pipeline"]
# Predictions that differ by more are listed.
CLOSE = 0.2
# Above this load before a run, other processes affect all times.
BUSY = 1.0


def measured_table() -> str:
    """Predicted and measured steps and memory, as Markdown."""
    lines = [
        "| model | strategy | processes | predicted | fastest step | median of all | ratio "
        "| MB predicted | MB measured | ratio |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows = measured()["rows"]
    for row in sorted(rows, key=lambda row: (list(MODELS).index(row["model"]), _way(row))):
        times = [f"{row[key] * 1e3:.1f} ms" for key in ("predicted", "fastest", "median")]
        sizes = [f"{row[key] / 1e6:.1f}" for key in ("predicted_bytes", "measured_bytes")]
        cells = [
            row["model"], row["strategy"], str(row["processes"]),
            *times, f"{_time_ratio(row):.2f}", *sizes, f"{_memory_ratio(row):.2f}",
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _way(row: Any) -> tuple[int, int]:
    return WAYS.index(row["strategy"]), row["processes"]


def _time_ratio(row: Any) -> float:
    return float(row["predicted"] / row["fastest"])


def _memory_ratio(row: Any) -> float:
    return float(row["predicted_bytes"] / row["measured_bytes"])


def _case(row: Any) -> str:
    count = row["processes"]
    return f"{row['model']}, {row['strategy']} on {count} process{'' if count == 1 else 'es'}"


def summary() -> str:
    """Sentences about the accuracy of this run's predictions, and its machine."""
    found = measured()
    rows, about = found["rows"], found["about"]
    sentences = []
    for what, ratio in (("step time", _time_ratio), ("memory", _memory_ratio)):
        errors = sorted(((abs(ratio(row) - 1), row) for row in rows), key=lambda pair: -pair[0])
        far = [f"{_case(row)} ({ratio(row):.2f})" for error, row in errors if error > CLOSE]
        count = len(rows) - len(far)
        sentences.append(
            f"{count} of {len(rows)} predictions of {what} are within {CLOSE:.0%} of what was "
            f"measured" + (f"; the others are {'; '.join(far)}." if far else ".")
        )
    cores = about["core"]
    if float(about["load"]) > BUSY:
        sentences.append(
            f"The load was {about['load']} before the run, so other programs may have slowed it."
        )
    sentences.append(
        f"Measured on {about['date']}: {about['machine']}; the core {cores}; {about['extras']}; "
        f"{about['mpi']}; one thread for each process; a load of {about['load']} before the run; "
        f"figures in `docs/results/{MEASURED.name}`."
    )
    return "\n".join(sentences)


def filled(page: str) -> str:
    """The page with the tables of this run between its markers."""
    tables = {
        "measured": measured_table(),
        "summary": summary(),
        **{model: table(model) for model in MODELS},
    }
    for name, text in tables.items():
        pattern = re.compile(rf"(<!-- {name} -->\n\n).*?(\n\n<!-- end {name} -->)", re.DOTALL)
        page, count = pattern.subn(lambda found, text=text: f"{found[1]}{text}{found[2]}", page)
        if count != 1:
            raise SystemExit(f"the page needs one pair of markers {name!r}, it has {count}")
    return page


def main() -> None:
    for model in MODELS:
        (FOLDER / f"scaling_{model}.svg").write_text(draw(model), encoding="utf-8")
        print(f"docs/pictures/scaling_{model}.svg")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print("docs/scaling.md")


if __name__ == "__main__":
    main()
