"""Linear systems, inverses, determinants and norms of matrices."""

from __future__ import annotations

from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestLinearSystems(OpSuite):
    cases = family_cases("linear_systems")
