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
