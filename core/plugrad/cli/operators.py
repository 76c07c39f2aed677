"""`plugrad ops`: the operators, and what each backend does for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Annotated, Final

import typer

import plugrad  # noqa: F401  # declares the operators
from plugrad.cli.completion import backend_names, operator_names
from plugrad.cli.declarations import derivatives, entry_of
from plugrad.cli.operator_page import print_operator, print_others
from plugrad.cli.output import console, fail, print_json, print_line, print_table
from plugrad.dispatch.backends.active import ActiveBackend, active_backends, find_backend
from plugrad.dispatch.backends.availability import (
    all_availability,
    needs_of,
    short_name,
)
from plugrad.dispatch.backends.candidates import Candidate, plain
from plugrad.dispatch.backends.primitives import is_primitive
from plugrad.dispatch.operator import all_operators, find_operator
from plugrad.plugins import get_manager
from plugrad.plugins.kernels.conflicts import kernels_serving
from plugrad.plugins.kernels.variants import unused_variants
from plugrad.plugins.loading.messages import nearest

# How wide a column of schemas is to be at least.
_SCHEMA: Final = 44
_NARROW: Final = 30
# The column that names the kernels' packages, and its smallest width.
_KERNEL: Final = "kernel of"
_OWNER: Final = 12


@dataclass(frozen=True)
class OperatorReport:
    """The properties of one operator.

    Attributes:
        name: with overload, and with the namespace if it is not plugrad's own.
        primitive: whether a backend has to provide it, because it has no decomposition.
        level: "core" if every backend must be able to compute it, else "full".
        needs: what its decomposition calls directly, if known.
        backends: for each backend: native, derived, decomposed or missing.
        missing: for each backend on which it is missing, the operators that it needs.
        kernels: for each backend with kernels for it, their packages, in the order in which they
            are tried; the first one computes, unless it declines.
        variants: for each backend with variants of its kernel, their packages, names and
            requirements, in the order in which they are tried.
        foreign: the backends that first try another package's kernel.
        derivatives: by argument, the formula of its gradient; empty unless the operator was
            requested by its whole name.
        unused: the variants that cannot be used here, as in `variants`, and why; also empty unless
            the operator was requested by its whole name.
    """

    name: str
    schema: str
    differentiable: bool
    primitive: bool
    level: str
    needs: list[str]
    backends: dict[str, str]
    missing: dict[str, list[str]]
    kernels: dict[str, list[str]]
    variants: dict[str, list[str]]
    foreign: list[str]
    doc: str
    derivatives: dict[str, str] = field(default_factory=dict)
    unused: dict[str, dict[str, str]] = field(default_factory=dict)


def report_operators(
    wanted: list[ActiveBackend], matches: Callable[[str], bool] = lambda name: True
) -> list[OperatorReport]:
    """The declared operators with matching names, by name."""
    # Not needed by other commands, and slow to import.
    from plugrad.testing.needs import learn_needs_of_plugins

    get_manager().load_all()
    learn_needs_of_plugins()
    found = {active.name: all_availability(active) for active in wanted}
    reports: list[OperatorReport] = []
    for op in all_operators():
        if not matches(short_name(op)):
            continue
        here = {name: table[op.qualified_name] for name, table in found.items()}
        everyone = {active.name: kernels_serving(op, active) for active in wanted}
        serving = {name: plain(found) for name, found in everyone.items()}
        reports.append(
            OperatorReport(
                name=short_name(op),
                schema=op.schema_text,
                differentiable=op.differentiable,
                primitive=is_primitive(op),
                level=op.level,
                needs=[short_name(need) for need in needs_of(op) or ()],
                backends={name: known.kind for name, known in here.items()},
                missing={name: list(known.missing) for name, known in here.items() if not known},
                kernels={name: [one.owner for one in found] for name, found in serving.items()},
                variants={
                    name: [_told(one) for one in found if one.variant is not None]
                    for name, found in everyone.items()
                    if len(found) > len(serving[name])
                },
                foreign=[name for name, found in serving.items() if found and not found[0].own],
                doc=op.doc,
            )
        )
    return sorted(reports, key=lambda report: (report.name.lower(), report.name))


def _unused(report: OperatorReport, wanted: list[ActiveBackend]) -> dict[str, dict[str, str]]:
    op = find_operator(_qualified(report))
    names = set() if op is None else {op.full_name, op.kernel_name, report.name}
    found = {active.name: unused_variants(active, names) for active in wanted}
    return {
        name: {_told(candidate): reason for candidate, reason in rows}
        for name, rows in found.items()
        if rows
    }


def _told(candidate: Candidate) -> str:
    """A variant in words: its package, its name and its requirements."""
    variant = candidate.variant
    needs = variant.needs() if variant is not None else ""
    return f"{candidate.called} ({needs})" if needs else candidate.called


def operators(
    filter: Annotated[
        str,
        typer.Argument(
            help="An operator's name, a part of names, or a pattern such as 'log*'.",
            metavar="NAME",
            autocompletion=operator_names,
        ),
    ] = "",
    backend: Annotated[
        str,
        typer.Option(help="Show only this backend.", metavar="NAME", autocompletion=backend_names),
    ] = "",
    primitives: Annotated[
        bool,
        typer.Option(
            "--primitives",
            help="Show only operators that a backend must provide; all others are made from these.",
        ),
    ] = False,
    level: Annotated[
        str,
        typer.Option(
            "--level",
            help="Show only this level: core, what every backend must be able to do, or full, "
            "the rest.",
            metavar="LEVEL",
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """List the operators, or show one: text, derivatives, and the packages that compute it.

    A whole name shows that operator. A part of names, or a pattern, lists the operators with their
    schemas and says whether they have gradients.

    Per backend: native, the backend has a kernel; derived, an in-place operator made from the
    functional one; decomposed, made from operators that the backend has or can decompose in turn;
    missing, not available, with the names of the kernels that would make it available. "Kernel of"
    names the distribution whose kernel computes it, preceded by variants for this processor in
    brackets.
    """
    if level not in ("", "core", "full"):
        raise fail(f"--level must be core or full, got {level!r}")
    wanted = [find_backend(backend)] if backend else _usable_backends()
    reports = [
        report
        for report in report_operators(wanted, lambda name: _matches(name, filter))
        if (report.primitive or not primitives) and level in ("", report.level)
    ]
    shown = [_whole(report, wanted) for report in reports if _is_called(report.name, filter)]
    if as_json:
        print_json([asdict(report) for report in shown or reports])
        return
    if not reports:
        raise fail(_nothing(filter), code=1)
    if shown:
        _print_shown(shown)
        others = [report.name for report in reports if not _is_called(report.name, filter)]
        print_others(filter, others)
        return
    names = [active.name for active in wanted]
    _print_operators(reports, names)
    print_line(_summary(reports, names))


def _whole(report: OperatorReport, wanted: list[ActiveBackend]) -> OperatorReport:
    """A report with what takes longer to find out."""
    formulas = derivatives(_entry(report))
    return replace(report, derivatives=formulas, unused=_unused(report, wanted))


def _entry(report: OperatorReport) -> Mapping[str, object]:
    op = find_operator(_qualified(report))
    return {} if op is None else entry_of(op)


def _qualified(report: OperatorReport) -> str:
    return report.name if "::" in report.name else f"plugrad::{report.name}"


def _print_shown(reports: list[OperatorReport]) -> None:
    for place, report in enumerate(reports):
        if place:
            print_line()
        print_operator(report, _entry(report))


def _matches(name: str, wanted: str) -> bool:
    """Whether a name is meant: as a pattern if that is one, else as a part."""
    return fnmatchcase(name, wanted) if set("*?[") & set(wanted) else wanted in name


def _is_called(name: str, wanted: str) -> bool:
    """Whether `wanted` names this operator, with or without its overload and its namespace."""
    plain_name = name.rpartition("::")[2]
    return wanted in (name, plain_name, name.partition(".")[0], plain_name.partition(".")[0])


def _nothing(wanted: str) -> str:
    known = {short_name(op).partition(".")[0] for op in all_operators()}
    close = nearest(wanted, known)
    hint = f"; did you mean {close!r}?" if close else ""
    return f"no operator's name contains {wanted!r}{hint}"


def _print_operators(reports: list[OperatorReport], names: list[str]) -> None:
    # Between two columns there are three spaces.
    least = {name: max(len(name), len("decomposed")) for name in names}
    owners = {report.name: _owner(report, names) for report in reports}
    if any(owners.values()):
        least[_KERNEL] = min(_OWNER, max(len(owner) for owner in owners.values()))
    left = console().width - 16 - sum(least.values()) - 3 * (len(least) + 2)
    beside = left - max(len(report.name) for report in reports) >= _SCHEMA
    first = {"level": False, "gradient": False}
    if left < _NARROW and not beside:
        columns = {"operator": True, **first, "backends": True}
        rows = [(report.name, *_traits(report), _by_kind(report)) for report in reports]
        print_table(columns, rows, {"backends": _NARROW})
        return
    # Where it is narrow the schema, which begins with the name, takes the name's place.
    columns = {"operator": not beside, **first, **dict.fromkeys(least, True)}
    if beside:
        columns["schema"] = True
    print_table(
        columns,
        (
            (
                report.name if beside else report.schema,
                *_traits(report),
                *(_cell(report, name) for name in names),
                *([owners[report.name]] if _KERNEL in least else []),
                *([report.schema] if beside else []),
            )
            for report in reports
        ),
        least,
    )


def _traits(report: OperatorReport) -> tuple[str, str]:
    return report.level, "yes" if report.differentiable else "no"


def _by_kind(report: OperatorReport) -> str:
    """All backends in one cell: "native: cpu; decomposed: one, two"."""
    found: dict[str, list[str]] = {}
    for name, kind in report.backends.items():
        whose = f" ({_short(report.kernels[name][0])})" if name in report.foreign else ""
        found.setdefault(kind, []).append(name + whose)
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in found.items())


def _owner(report: OperatorReport, names: list[str]) -> str:
    """The package whose kernel computes an operator; for several backends, only foreign
    packages."""
    if len(names) == 1:
        owners = report.kernels[names[0]]
        # Foreign kernels may decline, so the next ones are shown, too.
        asked = owners if names[0] in report.foreign else owners[:1]
        return ", ".join([*_variants(report, names[0]), *[_short(owner) for owner in asked]])
    told = [f"{name}: {_short(report.kernels[name][0])}" for name in report.foreign]
    told += [f"{name}: {', '.join(_variants(report, name))}" for name in report.variants]
    return "; ".join(told)


def _variants(report: OperatorReport, backend: str) -> list[str]:
    """The variants of an operator's kernel: ``plugrad-fast (avx512)``."""
    found = report.variants.get(backend, [])
    return [f"{_short(text)} ({text.partition(': ')[2].split(' (')[0]})" for text in found]


def _short(owner: str) -> str:
    """A distribution without its version."""
    return owner.split(" ")[0] if not owner.startswith("backend ") else owner


def _cell(report: OperatorReport, backend: str) -> str:
    missing = report.missing.get(backend, [])
    kind = report.backends[backend]
    return f"{kind}: {', '.join(missing)}" if missing and missing != [report.name] else kind


def _usable_backends() -> list[ActiveBackend]:
    """Every installed backend that can be activated, and backends that were activated explicitly;
    with a device to compute on."""
    for name in get_manager().backends():
        try:
            find_backend(name)
        except Exception:
            # `plugrad doctor` explains why; the other backends are still shown.
            continue
    usable = [active for active in active_backends() if active.backend.device_count()]
    return sorted(usable, key=lambda active: active.name)


def _summary(reports: list[OperatorReport], names: list[str]) -> str:
    primitive = sum(report.primitive for report in reports)
    parts = [f"{len(reports)} operators, {primitive} of them primitive"]
    for name in names:
        kinds = [report.backends[name] for report in reports]
        counts = [f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(sorted(kinds))]
        parts.append(f"{name}: {', '.join(counts)}")
    return "; ".join(parts) + "."
