"""Pseudo-inverses, least squares, ranks, condition numbers and exponentials of matrices."""

from __future__ import annotations

from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestMatrixFunctions(OpSuite):
    cases = family_cases("matrix_functions")
