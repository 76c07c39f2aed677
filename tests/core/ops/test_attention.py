"""Attention: the shared suite, and what it cannot express: long sequences, dropout, memory."""

from __future__ import annotations

from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestAttention(OpSuite):
    cases = family_cases("attention")
