"""`fallback`: what a backend cannot compute is computed on another one, on demand."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dispatch.backends.active import ActiveBackend, activate_backend, deactivate_backend
from plugrad.plugins import Backend, HostFallbackWarning, OperatorNotFoundError


class Memory:
    """Memory that NumPy cannot reach."""

    def __init__(self, data: Any) -> None:
        self.data = np.array(data)

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: self.data.dtype)


class Far(Backend):
    def __init__(self, mutable: bool = True, fallback: str | None = "cpu") -> None:
        super().__init__("far", array_type=Memory, mutable=mutable, fallback=fallback)

    def kernels(self) -> Any:
        return {
            "mul": lambda a, b: Memory(np.multiply(a.data, getattr(b, "data", b))),
            "copy_": self.copy,
            "view": lambda a, size: self.sharing(a.data.reshape(size)),
            "expand": lambda a, size: self.sharing(np.broadcast_to(a.data, size)),
        }

    @staticmethod
    def copy(target: Memory, source: Memory) -> None:
        target.data[...] = source.data

    @staticmethod
    def sharing(data: Any) -> Memory:
        made = Memory(())
        made.data = data
        return made

    def from_host(self, array: Any, index: int) -> Memory:
        return Memory(array)

    def to_host(self, array: Memory) -> Any:
        return array.data.copy()


@pytest.fixture
def far() -> Iterator[ActiveBackend]:
    yield activate_backend(Far())
    deactivate_backend("far")


def numbers(**options: Any) -> Any:
    return plugrad.tensor([[1.0, 4.0], [9.0, 16.0]], device="far", **options)


@pytest.mark.filterwarnings("ignore::plugrad.plugins.HostFallbackWarning")
class TestResults:
    def test_values_and_device(self, far: ActiveBackend) -> None:
        y = numbers().sqrt()
        assert y.device.type == "far"
        assert type(y.array) is Memory
        assert y.tolist() == [[1.0, 2.0], [3.0, 4.0]]

    def test_gradients(self, far: ActiveBackend) -> None:
        x = numbers(requires_grad=True)
        x.sqrt().sum().backward()
        assert x.grad.device.type == "far"
        assert x.grad.tolist()[0] == [0.5, 0.25]

    def test_several_results_keep_their_names(self, far: ActiveBackend) -> None:
        found = numbers().sort(dim=1, descending=True)
        assert found.values.tolist() == [[4.0, 1.0], [16.0, 9.0]]
        assert found.indices.device.type == "far"

    def test_lists_of_tensors(self, far: ActiveBackend) -> None:
        assert plugrad.cat([numbers(), numbers()]).shape == (4, 2)

    def test_writes_come_back(self, far: ActiveBackend) -> None:
        x = numbers()
        memory = x.array
        version = x._version
        assert x.sqrt_() is x
        assert memory.data.tolist() == [[1.0, 2.0], [3.0, 4.0]]
        assert x._version == version + 1

    def test_numbers_that_are_no_tensors(self, far: ActiveBackend) -> None:
        assert plugrad.equal(numbers(), numbers()) is True


def test_it_warns_once_per_operator(far: ActiveBackend) -> None:
    with pytest.warns(HostFallbackWarning, match=r"plugrad::sqrt has no kernel on backend 'far'"):
        numbers().sqrt()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numbers().sqrt()


@pytest.mark.filterwarnings("ignore::plugrad.plugins.HostFallbackWarning")
def test_the_warning_points_to_the_users_line(far: ActiveBackend) -> None:
    x = plugrad.ones(2, device="far")
    with pytest.warns(HostFallbackWarning) as found:
        x.exp()
    assert found[0].filename == __file__


def test_a_view_cannot_be_computed_elsewhere(far: ActiveBackend) -> None:
    with pytest.raises(OperatorNotFoundError, match=r"'plugrad::permute'"):
        numbers().permute(1, 0)


@pytest.mark.filterwarnings("ignore::plugrad.plugins.HostFallbackWarning")
def test_a_view_of_an_immutable_array_can() -> None:
    activate_backend(Far(mutable=False))
    try:
        assert numbers().permute(1, 0).tolist() == [[1.0, 9.0], [4.0, 16.0]]
    finally:
        deactivate_backend("far")


@pytest.mark.filterwarnings("ignore::plugrad.plugins.HostFallbackWarning")
def test_an_operator_that_the_fallback_lacks_names_both(far: ActiveBackend) -> None:
    with plugrad.library.Library("fallback_test", "DEF") as library:
        library.define("nowhere(Tensor self) -> Tensor")
        with pytest.raises(OperatorNotFoundError, match=r"Its fallback 'cpu' cannot"):
            plugrad.ops.fallback_test.nowhere(numbers())


def test_without_opting_in_it_is_an_error() -> None:
    activate_backend(Far(fallback=None))
    try:
        with pytest.raises(OperatorNotFoundError, match=r'fallback = "cpu" under .backends.far.'):
            numbers().sin()
    finally:
        deactivate_backend("far")
