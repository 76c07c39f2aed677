"""In-place operators on backends that cannot write, or have no kernel to write with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.errors import OperatorNotFoundError
from plugrad_cpu.backend import CpuBackend
from tests.core.frozen import FrozenBackend, locked


class CopylessBackend(CpuBackend):
    """NumPy without a kernel that copies into an array."""

    def __init__(self) -> None:
        super(CpuBackend, self).__init__("copyless", array_type=np.ndarray)

    def kernels(self) -> Mapping[str, Callable[..., Any]]:
        return {name: kernel for name, kernel in super().kernels().items() if name[-1] != "_"}


class DrawingBackend(FrozenBackend):
    """Has a kernel of an operator that there is in place only, and returns the new elements."""

    def kernels(self) -> Mapping[str, Callable[..., Any]]:
        def uniform_(array: Any, low: float, high: float, generator: Any) -> Any:
            return locked(np.full(array.shape, (low + high) / 2))

        return {**super().kernels(), "uniform_": uniform_}


@pytest.fixture
def drawing() -> Iterator[str]:
    activate_backend(DrawingBackend())
    yield "frozen"
    deactivate_backend("frozen")


@pytest.fixture
def frozen() -> Iterator[str]:
    activate_backend(FrozenBackend())
    yield "frozen"
    deactivate_backend("frozen")


@pytest.fixture
def copyless() -> Iterator[str]:
    activate_backend(CopylessBackend())
    yield "copyless"
    deactivate_backend("copyless")


def test_immutable_arrays_are_replaced(frozen: str) -> None:
    x = plugrad.tensor([1.0, 2.0], device=frozen)
    x.copy_(plugrad.tensor([3.0, 4.0]))
    assert (x.tolist(), x._version) == ([3.0, 4.0], 1)


def test_a_backend_without_a_copy_kernel_says_so(copyless: str) -> None:
    x = plugrad.tensor([1.0, 2.0], device=copyless)
    with pytest.raises(OperatorNotFoundError, match=r"copy_\(target, source\)"):
        x.copy_(plugrad.tensor([3.0, 4.0]))


def test_a_kernel_of_an_in_place_operator_returns_the_new_elements(drawing: str) -> None:
    x = plugrad.zeros(3, device=drawing)
    part = x[1:]
    assert part.uniform_(1.0, 3.0) is part
    assert (x.tolist(), x.dtype, x._version) == ([0.0, 2.0, 2.0], plugrad.float32, 1)
