"""How a backend computes each operator: its own kernel, a decomposition, or what it lacks.

Running a decomposition shows which operators it calls; `tools/needs.py` writes them to
`ops/needs.json`.
"""

from __future__ import annotations

# Interpreted: used by commands, tests and errors, never during a call.
import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from plugrad.dispatch import keys
from plugrad.dispatch.backends.active import ActiveBackend
from plugrad.dispatch.backends.primitives import functional_of, is_decomposed
from plugrad.dispatch.backends.raw_kernels import raw_kernel_of
from plugrad.dispatch.operator import Operator, all_operators, find_operator

NATIVE = "native"
DERIVED = "derived"
DECOMPOSED = "decomposed"
MISSING = "missing"

NEEDS_FILE = Path(__file__).parents[2] / "ops" / "needs.json"


@dataclass(frozen=True)
class Availability:
    """How a backend computes an operator.

    Attributes:
        kind: "native", it has a kernel; "derived", an in-place operator that computes the
            functional one and copies; "decomposed", composed of operators that are available in
            turn; "missing", otherwise.
        missing: if it is missing, the names of the operators that would make it available if the
            backend had kernels for them: its own name if it has no decomposition.
    """

    kind: str
    missing: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.kind != MISSING


def availability(op: Operator, active: ActiveBackend) -> Availability:
    """How a backend computes an operator, or which operators it lacks for that.

    >>> from plugrad.dispatch.backends.availability import availability
    >>> from plugrad.dispatch.backends.active import find_backend
    >>> from plugrad.dispatch.operator import find_operator
    >>> availability(find_operator("plugrad::exp"), find_backend("cpu"))
    Availability(kind='native', missing=())
    """
    return _Search(active).of(op)


def all_availability(active: ActiveBackend) -> dict[str, Availability]:
    """`availability` of every operator that is declared, by qualified name."""
    search = _Search(active)
    return {op.qualified_name: search.of(op) for op in all_operators()}


def short_name(op: Operator) -> str:
    """The name with overload, and with the namespace if that is not plugrad's own."""
    return op.full_name if op.namespace == "plugrad" else op.qualified_name


@functools.cache
def needs() -> Mapping[str, tuple[str, ...]]:
    """For each operator of plugrad's that has a decomposition: what that calls directly."""
    table: dict[str, list[str]] = json.loads(NEEDS_FILE.read_text("utf-8"))
    return {name: tuple(names) for name, names in table.items()}


_learned: Final[dict[str, tuple[str, ...]]] = {}


def learn_needs(table: Mapping[str, Iterable[str]]) -> None:
    """Store what the decompositions of other packages' operators call: `trace_needs` finds out.

    Args:
        table: operator names, with namespace if that is not plugrad's, to the names of the
            operators that each calls.
    """
    _learned.update({name: tuple(called) for name, called in table.items() if "::" in name})


def needs_of(op: Operator) -> tuple[Operator, ...] | None:
    """The operators that a decomposition calls directly; None if unknown."""
    name = short_name(op)
    names = _learned.get(name) if "::" in name else needs().get(name)
    if names is None:
        return None
    found = [find_operator(need if "::" in need else f"plugrad::{need}") for need in names]
    return tuple([need for need in found if need is not None])


def has_kernel(op: Operator, active: ActiveBackend) -> bool:
    """Whether a backend has a kernel of its own that calls of an operator reach."""
    key = keys.dispatch_key(active.key_name)
    if op.kernel_for(key) is not None:
        return True
    if op.schema.is_inplace and not active.backend.mutable and op.full_name != "copy_":
        return False
    return raw_kernel_of(op, active) is not None


class _Search:
    """Follows decompositions down to the backend's kernels; visits each operator once."""

    def __init__(self, active: ActiveBackend) -> None:
        self.active = active
        self.known: dict[str, Availability] = {}

    def of(self, op: Operator) -> Availability:
        name = op.qualified_name
        found = self.known.get(name)
        if found is None:
            # Assumed within a cycle, so that the cycle's other operators decide.
            self.known[name] = Availability(DECOMPOSED)
            found = self.known[name] = self._look(op)
        return found

    def _look(self, op: Operator) -> Availability:
        if has_kernel(op, self.active) or (
            op.qualified_name == "plugrad::copy_" and not self.active.backend.mutable
        ):
            return Availability(NATIVE)
        functional = functional_of(op)
        if is_decomposed(op):
            parts = needs_of(op)
            if parts is not None or functional is None:
                return self._made_of(parts or (), DECOMPOSED)
        if functional is None:
            return Availability(MISSING, (short_name(op),))
        copy = find_operator("plugrad::copy_")
        views = op.structure == "inplace_view" or copy is None
        kind = DECOMPOSED if is_decomposed(op) else DERIVED
        return self._made_of((functional,) if views else (functional, copy), kind)

    def _made_of(self, parts: tuple[Operator | None, ...], kind: str) -> Availability:
        missing: dict[str, None] = {}
        for part in parts:
            if part is not None:
                missing.update(dict.fromkeys(self.of(part).missing))
        return Availability(MISSING, tuple(sorted(missing))) if missing else Availability(kind)
