"""Updates the figures in docs/comparison.md from docs/performance.md, so that both are from one
run: `python -m tools.comparison_page`.

The page has markers: `compiled` for the table of compiled steps, `slower` for the cases in which
plugrad is slower than PyTorch. The other tables there are written by `benchmarks.comparison`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from benchmarks.comparison import markdown, replaced

DOCS = Path(__file__).resolve().parents[1] / "docs"
PERFORMANCE = DOCS / "performance.md"
PAGE = DOCS / "comparison.md"
Row = dict[str, str]
# Steps of captured_steps that are compared with PyTorch.
ON_THE_CPU: Final = "on the processor, "
RATIOS: Final = {
    "to PyTorch": "to PyTorch, eager",
    "to plugrad, eager": "to plugrad, eager",
    "to plugrad by XLA": "to the same step by XLA",
}
COUNTS: Final = re.compile(
    r"^PyTorch has (\d+) of these rows, too\. plugrad needs less in (\d+) of them, "
    r"the same within five percent in (\d+), and more in (\d+)\.",
    re.MULTILINE,
)
SLOWER: Final = re.compile(
    r"^\*\*Slower than PyTorch\*\*, and how many times: (.*)\.$", re.MULTILINE
)


def benchmarks(performance: str) -> dict[str, list[Row]]:
    """The rows of the page on performance, by benchmark."""
    found: dict[str, list[Row]] = {}
    for section in performance.split("\n## ")[1:]:
        name, _, text = section.partition("\n")
        lines = [line.strip("| ") for line in text.splitlines() if line.startswith("| ")]
        cells = [[cell.strip() for cell in line.split(" |")] for line in lines]
        if cells and cells[0][0] == "case":
            found[name] = [dict(zip(cells[0], row, strict=False)) for row in cells[2:]]
    return found


def median(row: Mapping[str, str], column: str) -> str:
    """A cell without the fastest round, which is in brackets."""
    return row.get(column, "").partition(" (")[0]


def compiled(performance: str) -> str:
    """Compiled steps beside eager ones, and beside those that XLA compiles."""
    rows = [["step", *RATIOS.values()], ["---", *["---:"] * len(RATIOS)]]
    by_hand = []
    for row in benchmarks(performance)["captured_steps"]:
        case = row["case"]
        if case.startswith(ON_THE_CPU):
            ratios = [median(row, column) or "not measured" for column in RATIOS]
            rows.append([case.removeprefix(ON_THE_CPU), *ratios])
        elif median(row, "to JAX by hand"):
            by_hand.append((case, median(row, "to JAX by hand")))
    known = "; ".join(f"{case}: {ratio}" for case, ratio in by_hand)
    return (
        f"{markdown(rows)}\n\nOn JAX, the time of a step in plugrad that XLA compiled, over that "
        f"of the same step written by hand for `jax.jit`: {known}."
    )


def slower(performance: str) -> str:
    """How many cases are slower than PyTorch's, and which."""
    counts, listed = COUNTS.search(performance), SLOWER.search(performance)
    if counts is None or listed is None:
        raise SystemExit("the page on performance does not say which cases are slower")
    cases, less, same, more = counts.groups()
    where = {row["case"]: name for name, rows in benchmarks(performance).items() for row in rows}
    rows = [["case", "benchmark", "times as long"], ["---", "---", "---:"]]
    for entry in listed[1].split("; "):
        case, _, ratio = entry.rpartition(" ")
        rows.append([case, where[case], ratio])
    return (
        f"Of {cases} cases on two CPU cores, plugrad takes less time than PyTorch in {less}, about "
        f"the same in {same} and more in {more}. These are the {more}:\n\n{markdown(rows)}"
    )


def quoted(performance: str, page: str) -> str:
    """The page with what it quotes."""
    page = replaced(page, "compiled", compiled(performance))
    return replaced(page, "slower", slower(performance))


if __name__ == "__main__":
    text = quoted(PERFORMANCE.read_text(encoding="utf-8"), PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")
