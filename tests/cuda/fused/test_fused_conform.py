"""The conformance kit on all of plugrad-cuda's kernels, those that are fused in the emulation."""

from __future__ import annotations

import pytest

from tests.core.testing.conformance.runs import run_kit_on
from tests.cuda.emulation.runtime import Emulation
from tests.cuda.fused.conftest import EmulatedBackend


@pytest.mark.long
def test_certified_at_level_full(emulation: Emulation) -> None:
    emulation.check = True
    try:
        run = run_kit_on(EmulatedBackend(emulation), "--plugrad-level=full")
    finally:
        emulation.check = False
    assert not run.failures
    certificate = run.certificates["emulated"]
    assert certificate.certified("full"), certificate
