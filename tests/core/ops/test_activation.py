"""Activation: the shared suite."""

from __future__ import annotations

from tests.core.ops.harness import OpSuite, collect
from tests.core.ops.samples import activation


class TestActivation(OpSuite):
    cases = collect(activation.CASES)
