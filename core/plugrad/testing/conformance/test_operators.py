"""Operators: the backend can compute every operator that all backends must support."""

from __future__ import annotations

from collections.abc import Iterator

from plugrad.dispatch.operator import all_operators
from plugrad.testing.conformance.kit.matrix import Item, each
from plugrad.testing.conformance.kit.subject import Subject
from plugrad.testing.conformance.kit.trials import Selection


def core_operators(subject: Subject, selection: Selection) -> Iterator[Item]:
    for op in all_operators():
        if op.level == "core" and op.namespace == "plugrad":
            yield Item(op.full_name, op.qualified_name, op.qualified_name)


@each("operator", core_operators)
def test_operator_of_the_core_is_available(subject: Subject, operator: str) -> None:
    known = subject.availability[operator]
    wanted = ", ".join(known.missing)
    assert known, f"backend {subject.name!r} needs a kernel for {wanted} to compute {operator}"
