"""The parts of the pages about the tables that commands write."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.torch_tables.findings import Known

DOCS = Path(__file__).parents[2] / "docs"


def rendered(page: Path, table: str, lines: Iterable[str]) -> str:
    """The whole page, with `lines` as the part that `python -m tests.TABLE.page` writes."""
    start = f"<!-- Below: written by `python -m tests.{table}.page`. -->\n"
    return page.read_text("utf-8").partition(start)[0] + start + "\n" + "\n".join([*lines, ""])


def differences(known: Known) -> list[str]:
    """A heading and a table of known differences, of which rows of the page's own may follow."""
    lines = ["## Differences", "", "| entry | what differs | why |", "| --- | --- | --- |"]
    for name in sorted(known, key=str.lower):
        lines += [f"| `{name}` | {kind} | {why} |" for kind, why in sorted(known[name].items())]
    return lines
