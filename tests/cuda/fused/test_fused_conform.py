"""The conformance kit on all of plugrad-cuda's kernels, those that are fused in the emulation."""

from __future__ import annotations

import pytest

from tests.core.testing.conformance.runs import run_kit
from tests.cuda.emulation.runtime import Emulation


@pytest.mark.long
def test_certified_at_level_full(
    emulated_device: str, emulation: Emulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emulation, "check", True)
    run = run_kit(f"--plugrad-backend={emulated_device}", "--plugrad-level=full")
    assert not run.failures
    certificate = run.certificates[emulated_device]
    assert certificate.certified("full"), certificate
