"""Convolution and pooling over signals and volumes, and pooling of rarer kinds."""

from __future__ import annotations

from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestWindows(OpSuite):
    cases = family_cases("windows")
