"""The certificate as a file: JSON for programs, one self-contained HTML page for people."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from plugrad.testing.conformance.kit.certificate import LEVELS, Certificate, Count, OperatorRecord

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2330; background: #fff;
  max-width: 62rem; margin: 2.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.verdicts { display: flex; gap: 1rem; flex-wrap: wrap; margin: 1.2rem 0; }
.verdict { border: 1px solid #d5dae3; border-left: .4rem solid #b3bac7; border-radius: .4rem;
  padding: .5rem 1rem; } .verdict b { text-transform: capitalize; }
.verdict.yes { border-left-color: #23894a; } .verdict.no { border-left-color: #c23a2b; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .22rem .7rem .22rem 0; border-bottom: 1px solid #e7eaf0;
  vertical-align: top; }
th { font-weight: 600; color: #55607a; position: sticky; top: 0; background: #fff; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.n.failed { color: #c23a2b; font-weight: 600; }
tr.missing td { color: #8a93a6; }
code { font: 13px/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; margin: 0; }
dt { color: #55607a; } dd { margin: 0; }
input { font: inherit; padding: .3rem .6rem; width: 20rem; max-width: 100%;
  border: 1px solid #c5ccd9; border-radius: .3rem; margin: .3rem 0 .6rem; }
@media (prefers-color-scheme: dark) {
  body, th { background: #14181f; color: #dfe4ee; } th, dt { color: #97a3ba; }
  th, td { border-color: #2a313d; } .verdict { border-color: #2a313d; }
  input { background: #1c222c; color: inherit; border-color: #3a4352; } }
"""

_FILTER: Final = """
document.querySelectorAll("input").forEach(box => box.addEventListener("input", () => {
  for (const row of box.nextElementSibling.tBodies[0].rows)
    row.hidden = !row.textContent.toLowerCase().includes(box.value.toLowerCase());
}));
"""


def write_report(certificates: list[Certificate], path: str) -> None:
    """Write certificates to a .json or .html file; several are a list, or one below the other."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix == ".json":
        values = [certificate.to_json() for certificate in certificates]
        text = json.dumps(values[0] if len(values) == 1 else values, indent=2) + "\n"
    else:
        text = html_page(certificates)
    target.write_text(text, "utf-8")


def html_page(certificates: list[Certificate]) -> str:
    """A page that needs nothing else: no style sheet, script or picture from elsewhere."""
    names = ", ".join(certificate.backend for certificate in certificates)
    body = "\n".join(line for certificate in certificates for line in _sections(certificate))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>plugrad conformance: {_text(names)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n<script>{_FILTER}</script>\n</body>\n</html>\n"
    )


def _sections(certificate: Certificate) -> Iterator[str]:
    facts = certificate.facts
    yield f"<h1>Backend <code>{_text(certificate.backend)}</code></h1>"
    yield f"<p>Conformance with plugrad {_text(facts['plugrad'])}.</p>"
    yield from _verdicts(certificate)
    yield "<h2>The backend</h2>"
    yield from _facts(certificate)
    yield "<h2>Topics</h2>"
    rows = [*certificate.topics.items(), ("all", certificate.total)]
    yield from _table(("topic",), ([_cell(name), *_numbers(count)] for name, count in rows))
    failures = certificate.failures()
    if failures:
        yield f"<h2>Failures ({len(failures)})</h2>"
        yield "<input placeholder='Filter'>"
        yield "<table><thead><tr><th>test</th><th>reason</th></tr></thead><tbody>"
        for outcome in failures:
            test = outcome.test.rpartition("/")[2]
            yield f"<tr><td><code>{_text(test)}</code></td><td>{_text(outcome.reason)}</td></tr>"
        yield "</tbody></table>"
    skips = certificate.skips()
    if skips:
        yield "<h2>Skipped</h2>"
        yield "<table><thead><tr><th class='n'>tests</th><th>reason</th></tr></thead><tbody>"
        for reason, count in skips.items():
            yield f"<tr><td class='n'>{count}</td><td>{_text(reason)}</td></tr>"
        yield "</tbody></table>"
    records = [
        record
        for record in certificate.operators.values()
        if record.count.total or record.within or record.kind == "missing"
    ]
    yield f"<h2>Operators ({len(records)})</h2>"
    yield (
        "<p>How the backend computes each operator, the operator's own tests, and the number of "
        "other operators' tests that used it.</p>"
    )
    yield "<input placeholder='Filter'>"
    head = ("operator", "level", "computed")
    yield from _table(head, (_operator(record) for record in records), within=True)


def _verdicts(certificate: Certificate) -> Iterator[str]:
    yield "<div class='verdicts'>"
    for level in LEVELS:
        verdict = certificate.verdict(level)
        kind = "yes" if certificate.certified(level) else "no" if certificate.whole else ""
        if verdict == "not tried":
            kind = ""
        yield f"<div class='verdict {kind}'><b>{level}</b><br>{_text(verdict)}</div>"
    yield "</div>"


def _facts(certificate: Certificate) -> Iterator[str]:
    facts = certificate.facts
    origin = f"{facts['distribution']} {facts['version']}".strip() or "registered by hand"
    shown = {
        "distribution": origin,
        "contract": facts["api_version"],
        "arrays": facts["array_type"],
        "capabilities": ", ".join(facts["capabilities"]) or "none",
        "dtypes": ", ".join(facts["dtypes"]),
        "devices": ", ".join(facts["devices"]),
        **{f"kernels of {owner}": ", ".join(names) for owner, names in facts["kernels"].items()},
        "run on": f"Python {facts['python']}, {facts['platform']}",
    }
    yield "<dl>"
    for name, value in shown.items():
        yield f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>"
    yield "</dl>"


def _operator(record: OperatorRecord) -> list[str]:
    kind = record.kind
    if record.needs and record.needs != (record.name.removeprefix("plugrad::"),):
        kind += f": needs {', '.join(record.needs)}"
    return [
        f"<td><code>{_text(record.name)}</code></td>",
        _cell(record.level),
        _cell(kind),
        *_numbers(record.count),
        f"<td class='n'>{record.within or ''}</td>",
    ]


def _table(head: tuple[str, ...], rows: Iterable[list[str]], within: bool = False) -> Iterator[str]:
    columns = ["passed", "failed", "skipped", *(["within others"] if within else [])]
    names = [f"<th>{name}</th>" for name in head] + [f"<th class='n'>{c}</th>" for c in columns]
    yield f"<table><thead><tr>{''.join(names)}</tr></thead><tbody>"
    for row in rows:
        missing = " class='missing'" if any(cell.startswith("<td>missing") for cell in row) else ""
        yield f"<tr{missing}>{''.join(row)}</tr>"
    yield "</tbody></table>"


def _numbers(count: Count) -> list[str]:
    failed = " failed" if count.failed else ""
    return [
        f"<td class='n'>{count.passed or ''}</td>",
        f"<td class='n{failed}'>{count.failed or ''}</td>",
        f"<td class='n'>{count.skipped or ''}</td>",
    ]


def _cell(value: str) -> str:
    return f"<td>{_text(value)}</td>"


def _text(value: object) -> str:
    return html.escape(str(value))
