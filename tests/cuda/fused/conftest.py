"""The fused kernels in the emulation, as a table and as a backend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from plugrad_cuda.fused import kernels, launching
from tests.core.backends.conftest import activated
from tests.cuda.emulation.build import compiler
from tests.cuda.emulation.runtime import Emulation
from tests.cuda.host_namespace import CudaKernelsBackend


@pytest.fixture(scope="session")
def emulation() -> Emulation:
    if compiler() is None:
        pytest.skip("there is no C++ compiler")
    return Emulation()


@pytest.fixture
def positions_of_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels compute positions as for arrays of more than 2 ** 31 elements."""
    monkeypatch.setattr(launching, "_FITS", 0)


class EmulatedBackend(CudaKernelsBackend):
    """All of plugrad-cuda's kernels on host memory: NumPy's, and fused ones in the emulation."""

    def __init__(self, run: Emulation) -> None:
        super().__init__("emulated")
        self.run = run

    def kernels(self) -> dict[str, Any]:
        arrays = dict(super().kernels())
        return {**arrays, **kernels(arrays, self.run)}


@pytest.fixture(scope="module")
def emulated_device(emulation: Emulation) -> Iterator[str]:
    with activated(EmulatedBackend(emulation)) as name:
        yield name
