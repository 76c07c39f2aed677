"""Linalg: the shared suite."""

from __future__ import annotations

from tests.core.ops.harness import OpSuite, collect
from tests.core.ops.samples import linalg


class TestLinalg(OpSuite):
    cases = collect(linalg.CASES)
