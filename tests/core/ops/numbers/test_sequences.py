"""Combinations, integrals, differences, powers and different elements."""

from __future__ import annotations

from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestSequences(OpSuite):
    cases = family_cases("sequences")
