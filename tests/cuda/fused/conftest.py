"""The fused kernels in the emulation, as a table and as a backend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from plugrad.dispatch.active_backends import activate_backend, deactivate_backend
from plugrad_cpu.backend import CpuBackend
from plugrad_cpu.kernels import all_kernels
from plugrad_cuda.fused import kernels, launching
from tests.cuda.emulation.build import compiler
from tests.cuda.emulation.runtime import Emulation


@pytest.fixture(scope="session")
def emulation() -> Emulation:
    if compiler() is None:
        pytest.skip("there is no C++ compiler")
    return Emulation()


@pytest.fixture
def positions_of_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels compute positions as for arrays of more than 2 ** 31 elements."""
    monkeypatch.setattr(launching, "_FITS", 0)


class EmulatedBackend(CpuBackend):
    """The CPU's kernels, but those that are fused on CUDA run in the emulation."""

    def __init__(self, run: Emulation) -> None:
        super(CpuBackend, self).__init__("emulated", array_type=np.ndarray)
        self.run = run

    def kernels(self) -> dict[str, Any]:
        table = all_kernels()
        return {**table, **kernels(table, self.run)}

    def from_host(self, array: np.ndarray[Any, Any], index: int) -> np.ndarray[Any, Any]:
        return array.copy()

    def to_host(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array.copy()


@pytest.fixture(scope="module")
def emulated_device(emulation: Emulation) -> Iterator[str]:
    activate_backend(EmulatedBackend(emulation))
    yield "emulated"
    deactivate_backend("emulated")
