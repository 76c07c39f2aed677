"""`plugrad ops`: the operators, and what each backend does for them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

import plugrad  # noqa: F401  # declares the operators
from plugrad.cli.output import fail, print_json, print_line, print_table
from plugrad.dispatch import keys
from plugrad.dispatch.backend import ActiveBackend, active_backends, find_backend
from plugrad.dispatch.operator import Operator, all_operators
from plugrad.dispatch.primitives import functional_of, is_decomposed, is_primitive
from plugrad.plugins import get_manager

NATIVE = "native"
DERIVED = "derived"
COMPOSITE = "composite"
MISSING = "missing"


@dataclass(frozen=True)
class OperatorReport:
    """What there is to say about one operator.

    Attributes:
        name: with overload, and with the namespace if it is not plugrad's own.
        primitive: whether a backend has to provide it: it is not made from other operators.
        level: "core" for what every backend must be able to do, else "full".
        backends: for each backend: native, derived, composite or missing.
    """

    name: str
    schema: str
    differentiable: bool
    primitive: bool
    level: str
    backends: dict[str, str]
    doc: str


def report_operators(wanted: list[ActiveBackend]) -> list[OperatorReport]:
    """Every operator that is declared, by name."""
    reports = [
        OperatorReport(
            name=op.full_name if op.namespace == "plugrad" else op.qualified_name,
            schema=op.schema_text,
            differentiable=op.differentiable,
            primitive=is_primitive(op),
            level=op.level,
            backends={active.name: kernel_kind(op, active) for active in wanted},
            doc=op.doc,
        )
        for op in all_operators()
    ]
    return sorted(reports, key=lambda report: (report.name.lower(), report.name))


def kernel_kind(op: Operator, active: ActiveBackend) -> str:
    """How a backend computes an operator.

    "native" is a kernel of its own; "derived" an in-place operator that runs the functional one
    and copies; "composite" calls other operators; "missing" cannot be computed.
    """
    if op.kernel_for(keys.dispatch_key(active.backend.key_name or active.name.capitalize())):
        return NATIVE
    name = op.name if op.namespace == "plugrad" else f"{op.namespace}::{op.name}"
    if active.raw_kernel(name, op.overload) is not None:
        return NATIVE
    if is_decomposed(op):
        return COMPOSITE
    functional = functional_of(op)
    if functional is not None and kernel_kind(functional, active) != MISSING:
        return DERIVED
    return MISSING


def operators(
    filter: Annotated[
        str, typer.Argument(help="Show operators whose name contains this.", metavar="FILTER")
    ] = "",
    backend: Annotated[str, typer.Option(help="Show only this backend.", metavar="NAME")] = "",
    primitives: Annotated[
        bool,
        typer.Option(
            "--primitives",
            help="Show only what a backend has to provide; all others are made from these.",
        ),
    ] = False,
    level: Annotated[
        str,
        typer.Option(
            help="Show only this level: core, what every backend must be able to do, or full, "
            "the rest.",
            metavar="LEVEL",
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """List the operators: schema, whether they have gradients, and who computes them.

    Per backend: **native**, the backend has a kernel; **derived**, an in-place operator made from
    the functional one; **composite**, made from other operators; **missing**, not available.
    """
    if level not in ("", "core", "full"):
        raise fail(f"--level must be core or full, got {level!r}")
    wanted = [find_backend(backend)] if backend else _usable_backends()
    reports = [
        report
        for report in report_operators(wanted)
        if filter in report.name
        and (report.primitive or not primitives)
        and level in ("", report.level)
    ]
    if as_json:
        print_json([asdict(report) for report in reports])
        return
    if not reports:
        raise fail(f"no operator has {filter!r} in its name", code=1)
    names = [active.name for active in wanted]
    print_table(
        {"operator": False, "gradient": False, **dict.fromkeys(names, False), "schema": True},
        (
            (
                report.name,
                "yes" if report.differentiable else "no",
                *(report.backends[name] for name in names),
                report.schema,
            )
            for report in reports
        ),
    )
    print_line(_summary(reports, names))


def _usable_backends() -> list[ActiveBackend]:
    """Every installed backend that can be activated, and those that are active by hand."""
    for name in get_manager().backends():
        try:
            find_backend(name)
        except Exception:
            # `plugrad doctor` tells why; the others are still of interest.
            continue
    return sorted(active_backends(), key=lambda active: active.name)


def _summary(reports: list[OperatorReport], names: list[str]) -> str:
    primitive = sum(report.primitive for report in reports)
    parts = [f"{len(reports)} operators, {primitive} of them primitive"]
    for name in names:
        kinds = [report.backends[name] for report in reports]
        counts = [f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(sorted(kinds))]
        parts.append(f"{name}: {', '.join(counts)}")
    return "; ".join(parts) + "."
