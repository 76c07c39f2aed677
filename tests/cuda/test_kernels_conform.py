"""The conformance kit on plugrad-cuda's kernels, with NumPy as their namespace."""

from __future__ import annotations

import pytest

from tests.core.testing.conformance.runs import run_kit_on
from tests.cuda.host_namespace import CudaKernelsBackend


@pytest.mark.long
def test_certified_at_level_full() -> None:
    run = run_kit_on(CudaKernelsBackend(), "--plugrad-level=full")
    assert not run.failures
    certificate = run.certificates["cudakernels"]
    assert certificate.certified("full"), certificate
