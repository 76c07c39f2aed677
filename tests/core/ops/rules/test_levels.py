"""Levels of operators, and the primitives from which all others are composed."""

from __future__ import annotations

import pytest

from plugrad.codegen.model import EntryError, parse_entries
from plugrad.dispatch.backends.active import find_backend
from plugrad.dispatch.backends.availability import availability
from plugrad.dispatch.backends.primitives import core_primitives, functional_of, is_primitive
from plugrad.dispatch.operator import all_operators, find_operator
from tests.core.ops.decompositions.bare_backend import bare_backend

ENTRY = {"func": "f(Tensor self) -> Tensor", "differentiable": False, "doc": "Nothing."}


def test_operators_are_of_level_full_unless_they_say_core() -> None:
    assert parse_entries("own", [ENTRY])[0].level == "full"
    assert parse_entries("own", [{**ENTRY, "level": "core"}])[0].level == "core"


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(EntryError, match="level must be among core, full; got 'middle'"):
        parse_entries("own", [{**ENTRY, "level": "middle"}])


def test_inplace_variants_are_of_the_level_of_their_operator() -> None:
    for op in all_operators():
        made_of = functional_of(op)
        if made_of is not None and op.namespace == "plugrad":
            assert op.level == made_of.level, op.full_name


def test_what_programs_need_daily_is_core() -> None:
    for name in ("mul.Tensor", "softmax.int", "linear", "cross_entropy_loss", "max.dim", "rand"):
        op = find_operator(f"plugrad::{name}")
        assert op is not None
        assert op.level == "core", name


def test_core_primitives_are_primitives_of_level_core() -> None:
    names = {op.full_name for op in core_primitives()}
    assert {"add.Tensor", "mul.Tensor", "exp", "sum", "mm"} <= names
    assert "sub.Tensor" not in names
    assert all(is_primitive(op) and op.level == "core" for op in core_primitives())


def test_core_operators_are_made_of_core_primitives() -> None:
    with bare_backend("core") as name:
        active = find_backend(name)
        for op in all_operators():
            if op.namespace == "plugrad" and op.level == "core":
                assert availability(op, active), op.full_name


def test_all_operators_are_made_of_primitives() -> None:
    with bare_backend("full") as name:
        active = find_backend(name)
        for op in all_operators():
            if op.namespace == "plugrad":
                assert availability(op, active), op.full_name
