"""Loss: the shared suite."""

from __future__ import annotations

from tests.core.ops.harness import OpSuite, collect
from tests.core.ops.samples import loss


class TestLoss(OpSuite):
    cases = collect(loss.CASES)
