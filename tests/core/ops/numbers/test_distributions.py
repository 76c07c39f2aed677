"""Gradients of distributions, draws that leave no choice, and what cannot be drawn from."""

from __future__ import annotations

from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestDistributions(OpSuite):
    cases = family_cases("distributions")
