"""The certificate on the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, Final

from plugrad.testing.conformance.kit.certificate import LEVELS, Certificate, Count

_WIDTH: Final = 76
_SHOWN: Final = 12
_COLUMNS: Final = ("passed", "failed", "skipped")


def write_table(certificate: Certificate, terminal: Any) -> None:
    """Print a certificate through pytest's terminal reporter."""
    terminal.section(f"certificate of backend {certificate.backend!r}")
    for line in lines_of(certificate):
        good, bad = line.startswith("  core: certified"), ": not certified" in line
        good = good or line.startswith("  full: certified")
        terminal.write_line(line, green=good, red=bad)


def lines_of(certificate: Certificate) -> Iterator[str]:
    """The lines of the table."""
    facts = certificate.facts
    origin = f"{facts['distribution']} {facts['version']}".strip() or "registered by hand"
    yield f"{certificate.backend} ({origin}), contract {facts['api_version']}, " + (
        f"on plugrad {facts['plugrad']}, Python {facts['python']}"
    )
    yield from _wrapped("capabilities", facts["capabilities"] or ["none"])
    yield from _wrapped("dtypes", facts["dtypes"])
    yield from _wrapped("devices", facts["devices"])
    for owner, names in facts["kernels"].items():
        yield from _wrapped(f"kernels of {owner}", names)
    yield ""
    rows = [(topic, count) for topic, count in certificate.topics.items()]
    yield from _counted("topic", [*rows, ("all", certificate.total)])
    yield ""
    records = [record for record in certificate.operators.values() if record.count.total]
    yield f"{len(records)} operators were tried."
    bad = [(record.name, record.count) for record in records if record.count.failed]
    if bad:
        yield ""
        yield from _counted("operator", bad[:_SHOWN])
        if len(bad) > _SHOWN:
            yield f"and {len(bad) - _SHOWN} more operators with failures"
        yield ""
    for level in LEVELS[: LEVELS.index(certificate.level) + 1]:
        missing = [
            name.removeprefix("plugrad::")
            for name in certificate.missing("full")
            if certificate.operators[name].level == level
        ]
        if missing:
            yield from _wrapped(f"missing at level {level} ({len(missing)})", missing)
    skips = certificate.skips()
    if skips:
        yield "skipped:"
        for reason, count in list(skips.items())[:_SHOWN]:
            yield f"  {count:5d}  {reason}"
        if len(skips) > _SHOWN:
            yield f"         and for {len(skips) - _SHOWN} more reasons"
    yield ""
    for level in LEVELS:
        yield f"  {level}: {certificate.verdict(level)}"


def _counted(head: str, rows: list[tuple[str, Count]]) -> Iterator[str]:
    width = max(len(name) for name, _ in [(head, None), *rows])
    yield "  ".join([head.ljust(width), *(column.rjust(8) for column in _COLUMNS)])
    for name, count in rows:
        numbers = (count.passed, count.failed, count.skipped)
        yield "  ".join([name.ljust(width), *(f"{number or '':8}" for number in numbers)])


def _wrapped(name: str, values: list[str]) -> list[str]:
    return textwrap.wrap(
        f"{name}: {', '.join(values)}", _WIDTH, subsequent_indent="    ", break_on_hyphens=False
    )
