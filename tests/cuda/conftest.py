"""The kernels of plugrad-cuda need CuPy's names, not a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("cupy", reason="CuPy is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")

from tests.core.backends.conftest import activated
from tests.cuda.host_namespace import CudaKernelsBackend


@pytest.fixture(scope="package")
def kernels_device() -> Iterator[str]:
    """Host memory on which plugrad-cuda's kernels compute, through NumPy."""
    with activated(CudaKernelsBackend()) as name:
        yield name
