"""Operators of whole lists of tensors."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad.testing.cases import Arguments, family_cases, resolve
from tests.core.ops.harness import OpSuite

CASES = [case for case in family_cases("foreach") if not case.op.endswith("_")]
WITHOUT_TWIN = ("_foreach_norm", "_foreach_powsum", "_foreach_max", "_foreach_mm", "_foreach_clone")


class TestForeach(OpSuite):
    cases = family_cases("foreach")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_those_in_place_write_what_the_others_give(case: Any) -> None:
    if case.op in WITHOUT_TWIN:
        assert not hasattr(plugrad, case.op + "_")
        return
    with plugrad.no_grad():
        for index, sample in enumerate(case.all_samples()):
            if not isinstance(sample.args[0], list):
                continue
            made = Arguments("float64", index)
            args, kwargs = made.make(tuple(sample.args)), made.make(dict(sample.kwargs))
            expected = resolve(case.op)(*args, **kwargs)
            written = resolve(case.op + "_")(*args, **kwargs)
            for target, result, wanted in zip(args[0], written, expected, strict=True):
                assert result is target
                assert target.tolist() == wanted.tolist()


@pytest.mark.parametrize("name", ["abs", "sign", "norm", "clone"])
def test_results_of_one_call_require_grad_together(name: str) -> None:
    x, y, counts = plugrad.ones(2, requires_grad=True), plugrad.ones(2), plugrad.tensor([1, 2])
    function = getattr(plugrad, f"_foreach_{name}")
    of_x, of_y = function([x, y])
    assert of_x.requires_grad
    assert of_y.requires_grad
    of_y.sum().backward()
    assert x.grad is None
    assert y.grad is None
    of_x.sum().backward()
    assert x.grad is not None
    with plugrad.no_grad():
        assert not any(result.requires_grad for result in function([x, y]))
    if name == "clone":
        assert not function([x, counts])[1].requires_grad


def test_a_gradient_of_the_second_list_counts_too() -> None:
    x, y = plugrad.ones(2, requires_grad=True), plugrad.ones(2)
    assert all(result.requires_grad for result in plugrad._foreach_mul([y, y], [y, x]))
    written = plugrad._foreach_mul_([y.clone(), y.clone()], [y, x])
    assert [result.requires_grad for result in written] == [False, True]
