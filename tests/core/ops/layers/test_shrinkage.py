"""Shrinkage functions, and randomised units and dropouts where they draw nothing."""

from __future__ import annotations

from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestShrinkage(OpSuite):
    cases = family_cases("shrinkage")
