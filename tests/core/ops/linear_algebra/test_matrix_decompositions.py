"""Decompositions of matrices, and what is solved by them."""

from __future__ import annotations

from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestMatrixDecompositions(OpSuite):
    cases = family_cases("decompositions")
