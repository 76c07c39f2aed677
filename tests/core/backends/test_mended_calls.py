"""Backends that retry a failed call after a fix, and backends with arrays that are partly on other
processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad_cpu.backend import CpuBackend


class Elsewhere(Exception):
    """What kernels of the backend say to arrays in the wrong place."""


class MendingBackend(CpuBackend):
    """NumPy's kernels; some fail until the backend has moved the arrays."""

    def __init__(self) -> None:
        super(CpuBackend, self).__init__("mending", array_type=np.ndarray)
        self.moved = False
        self.mended: list[str] = []

    def kernels(self) -> Any:
        found: dict[str, Any] = dict(super().kernels())
        for name in ("sin", "add", "cumsum"):
            found[name] = self.failing(name, found[name])
        return found

    def failing(self, name: str, kernel: Any) -> Any:
        def failing(*arrays: Any) -> Any:
            if not self.moved:
                raise Elsewhere(name)
            return kernel(*arrays)

        return failing

    def run_again(self, kernel: Any, arrays: tuple[Any, ...], error: Exception) -> Any:
        if not isinstance(error, Elsewhere) or str(error) in self.mended:
            raise error
        self.mended.append(str(error))
        self.moved = True
        try:
            return kernel(*arrays)
        finally:
            self.moved = False

    def is_local(self, array: Any) -> bool:
        return bool(array.size != 3)


@pytest.fixture
def backend() -> Iterator[MendingBackend]:
    made = MendingBackend()
    activate_backend(made)
    yield made
    deactivate_backend("mending")


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("sin", lambda x: x.sin()),
        ("add", lambda x: x + x),
        ("cumsum", lambda x: x.cumsum(0)),
    ],
)
def test_a_call_that_the_backend_mends_has_its_result(
    name: str, call: Any, backend: MendingBackend
) -> None:
    x = plugrad.tensor([1.0, 2.0])
    assert call(x.to("mending")).tolist() == call(x).tolist()
    assert backend.mended == [name]


def test_what_it_does_not_mend_is_raised(backend: MendingBackend) -> None:
    x = plugrad.ones(2, device="mending")
    x.sin()
    with pytest.raises(Elsewhere, match="sin"):
        x.sin()
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        x + plugrad.ones(3, device="mending")


def test_gradients_of_mended_calls(backend: MendingBackend) -> None:
    x = plugrad.zeros(2, device="mending", requires_grad=True)
    x.sin().sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 1.0]


def test_tensors_whose_elements_are_elsewhere_print_without_them(backend: MendingBackend) -> None:
    assert repr(plugrad.ones(2, device="mending")) == "tensor([1., 1.], device='mending')"
    assert repr(plugrad.ones(3, device="mending")) == "tensor(..., device='mending', size=(3,))"
