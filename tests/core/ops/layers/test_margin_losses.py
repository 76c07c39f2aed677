"""Losses of margins, and of counts."""

from __future__ import annotations

from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestMarginLosses(OpSuite):
    cases = family_cases("margin_losses")
