"""The table of what decompositions call is what running them shows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from plugrad.dispatch.backends.availability import NEEDS_FILE, needs_of
from plugrad.dispatch.backends.primitives import is_decomposed
from plugrad.dispatch.operator import all_operators
from plugrad.testing.cases import OpCase, OpSample, T
from plugrad.testing.needs import trace_needs
from tools.needs import all_cases, render

# Of each operator; what the others of its samples call is mostly the same.
_ENOUGH = 1


def test_what_a_sample_calls_is_in_the_table() -> None:
    first = [replace(case, samples=case.all_samples()[:_ENOUGH]) for case in all_cases()]
    known = json.loads(NEEDS_FILE.read_text("utf-8"))
    found = trace_needs(first)
    changed = [
        name for name, called in found.items() if not set(called) <= set(known.get(name, ()))
    ]
    assert not changed, "run `python tools/needs.py`: decompositions have changed"


@pytest.mark.long
def test_the_table_is_not_stale() -> None:
    rendered = render()
    known, made = json.loads(NEEDS_FILE.read_text("utf-8")), json.loads(rendered)
    changed = [name for name in {**known, **made} if known.get(name) != made.get(name)]
    assert not changed, "run `python tools/needs.py`: decompositions have changed"
    assert NEEDS_FILE.read_text("utf-8") == rendered


def test_needs_are_known_of_every_decomposition() -> None:
    unknown = [
        each.full_name
        for each in all_operators()
        if each.namespace == "plugrad"
        and is_decomposed(each)
        and needs_of(each) is None
        and not each.schema.is_inplace
    ]
    assert unknown == [], "run tools/needs.py, after adding cases of these operators"


def test_only_direct_calls_are_noted() -> None:
    found = trace_needs([OpCase("addbmm", [OpSample((T((2, 2)), T((3, 2, 2)), T((3, 2, 2))))])])
    assert found["addbmm"] == ["add.Tensor", "bmm", "sum"]
    assert "mm" in found["bmm"]


def test_what_runs_on_the_host_is_not_needed() -> None:
    found = trace_needs([OpCase("rand", [OpSample(((2,),))])], ["float32"])
    assert found["rand"] == []


def test_decompositions_run_in_place_of_kernels() -> None:
    found = trace_needs([OpCase("sigmoid", [OpSample((T((2,)),))])], ["float32"])
    assert "exp" in found["sigmoid"]


def test_gradients_are_followed_too() -> None:
    found = trace_needs([OpCase("Tensor.narrow", [OpSample((T((4,)), 0, 1, 2))])], ["float32"])
    assert "where.self" in found["slice_backward"]


def test_calls_that_are_refused_are_passed_over() -> None:
    assert trace_needs([OpCase("mm", [OpSample((T((2,)), T((2,))))])]) == {}
