"""Counts, histograms, quantiles and covariances."""

from __future__ import annotations

from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestStatistics(OpSuite):
    cases = family_cases("statistics")
