"""What `plugrad ops NAME` prints about one operator."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from plugrad.cli.declarations import derivatives
from plugrad.cli.output import print_line, width_of

if TYPE_CHECKING:
    from plugrad.cli.operators import OperatorReport

# Descriptions of the rules of forward mode that need no formula.
_FORWARD = {
    "auto_element_wise": "the derivative times the tangent",
    "auto_linear": "the operator, applied to the tangents",
}

# Most of the operators with a longer name that are mentioned.
_MENTIONED = 6


def print_operator(report: OperatorReport, entry: Mapping[str, object]) -> None:
    """Schema, text, derivatives, and the kernels of each backend."""
    print_line(report.schema, style="bold")
    _print_text(str(entry.get("doc", "") or report.doc))
    print_line()
    print_line("Gradient", style="bold")
    _print_pairs(_gradient(report, entry))
    print_line()
    print_line(f"Kernels (level {report.level})", style="bold")
    for backend, kind in report.backends.items():
        _print_pairs([(backend, line) for line in _kernels(report, backend, kind)])
    is_inplace = report.name.partition(".")[0].endswith("_")
    example = str(entry.get("example_inplace" if is_inplace else "example", "")).strip()
    if example:
        print_line()
        print_line("Example", style="bold")
        for line in example.splitlines():
            print(f"  {line}")
    if entry.get("source"):
        print_line()
        print_line(f"Source: {entry['source']}")


def print_others(name: str, others: list[str]) -> None:
    """The operators that have a name in theirs."""
    if others:
        shown = ", ".join(others[:_MENTIONED])
        more = f" and {len(others) - _MENTIONED} more" if len(others) > _MENTIONED else ""
        print_line()
        print_line(f"Other operators: {shown}{more}. `plugrad ops '*{name}*'` lists them.")


def _print_text(text: str) -> None:
    """Paragraphs, as wide as the terminal."""
    if sys.stdout.isatty():
        text = "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n"))
    print_line(text.strip())


def _gradient(report: OperatorReport, entry: Mapping[str, object]) -> list[tuple[str, str]]:
    formulas = derivatives(entry)
    if formulas:
        rows = list(formulas.items())
        forward = entry.get("forward")
        if isinstance(forward, Mapping):
            rows += [(f"forward mode, {key}", str(value)) for key, value in forward.items()]
        elif forward:
            rows.append(("forward mode", _FORWARD.get(str(forward), str(forward))))
        return rows
    if entry.get("composite"):
        return [("", "derived from the operators in its decomposition")]
    if report.differentiable:
        return [("", "by a function in Python")]
    return [("", "none")]


def _kernels(report: OperatorReport, backend: str, kind: str) -> list[str]:
    """The kernels in the order in which they run; without a kernel, how the operator is computed.
    At the end, the variants that cannot be used here, and why."""
    unused = report.unused.get(backend, {})
    variants = [one for one in report.variants.get(backend, []) if one not in unused]
    asked = [*variants, *report.kernels.get(backend, [])]
    return [
        *_computing(report, backend, kind, asked),
        *[f"not used: {one}: {reason}" for one, reason in unused.items()],
    ]


def _computing(report: OperatorReport, backend: str, kind: str, asked: list[str]) -> list[str]:
    if kind == "decomposed" and not asked:
        return [f"decomposed into {', '.join(report.needs) or 'calls of the host'}"]
    if kind == "derived":
        return ["derived from the functional operator and a copy"]
    if kind == "missing":
        return [f"missing: {', '.join(report.missing.get(backend, []))}"]
    return asked or [kind]


def _print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    rows = list(pairs)
    width = max((len(left) for left, _ in rows), default=0)
    before = None
    for left, right in rows:
        named = "" if left == before else left
        gap = "  " if width else ""
        text = f"  {named:<{width}}{gap}{right}"
        print_line(text if width_of(sys.stdout) > len(text) else f"  {named}{gap}{right}")
        before = left
