"""The conformance kit on plugrad-cuda's kernels, with NumPy as their namespace."""

from __future__ import annotations

import pytest

from tests.core.testing.conformance.runs import run_kit


@pytest.mark.long
def test_certified_at_level_full(kernels_device: str) -> None:
    run = run_kit(f"--plugrad-backend={kernels_device}", "--plugrad-level=full")
    assert not run.failures
    certificate = run.certificates[kernels_device]
    assert certificate.certified("full"), certificate
