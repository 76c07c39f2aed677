"""Linear systems, inverses, determinants and norms of matrices."""

from __future__ import annotations

from tests.core.ops.harness import OpSuite, collect
from tests.core.ops.samples import linear_systems


class TestLinearSystems(OpSuite):
    cases = collect(linear_systems.CASES)
