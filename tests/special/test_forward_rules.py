"""Every function's forward rule, against double reverse."""

from __future__ import annotations

import pytest

from plugrad.testing.cases import OpCase
from plugrad_special.cases import CASES
from tests.core.ops.rules.tangents import assert_tangents_match_double_reverse

DIFFERENTIABLE = [case for case in CASES if case.gradient]


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=[case.op for case in DIFFERENTIABLE])
def test_tangents_match_double_reverse(case: OpCase) -> None:
    assert_tangents_match_double_reverse(case)
