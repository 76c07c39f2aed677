"""Shapes, strides and numbers of an array's own classes do not reach users: the oracle is NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.plugins import Backend
from plugrad.tensor.base import sizes_of
from plugrad_cpu.backend import CpuBackend


class Lengths(tuple[Any, ...]):
    """What some libraries have for a shape."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"other.Lengths({list(self)})"


class Other(np.ndarray[Any, Any]):
    """An array with a shape of the class `kind`."""

    kind: Any = Lengths

    @property
    def shape(self) -> Any:  # type: ignore[override]  # that is the point
        return self.kind(np.ndarray.shape.__get__(self))


KINDS = {
    "tuple": Lengths,
    "list": list,
    "numbers": lambda shape: tuple(np.int64(item) for item in shape),
}


class OtherBackend(CpuBackend):
    def __init__(self) -> None:
        Backend.__init__(self, "other", array_type=Other)

    def as_array(self, value: Any) -> Any:
        return np.asarray(value).view(Other)

    def kernels(self) -> Any:
        return {name: _on_plain(raw) for name, raw in super().kernels().items()}

    def from_host(self, array: Any, index: int) -> Any:
        return np.array(array).view(Other)

    def to_host(self, array: Any) -> Any:
        return array.view(np.ndarray)

    def strides(self, array: Any) -> Any:
        return array.kind(super().strides(array.view(np.ndarray)))

    def storage_offset(self, array: Any) -> Any:
        return np.int64(0)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.view(np.ndarray) if isinstance(value, Other) else value


def _other(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)([_other(item) for item in value])
    return value.view(Other) if isinstance(value, np.ndarray) else value


def _on_plain(raw: Any) -> Any:
    return lambda *args: _other(raw(*[_plain(value) for value in args]))


@pytest.fixture(params=KINDS)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Other, "kind", staticmethod(KINDS[request.param]))
    activate_backend(OtherBackend())
    yield
    deactivate_backend("other")


@pytest.mark.usefixtures("backend")
def test_what_users_see_is_plugrads() -> None:
    empty = plugrad.zeros(0, 3, device="other")
    assert repr(empty) == "tensor([], device='other', size=(0, 3))"
    x = plugrad.tensor([[1.0, 2.0, 3.0]], device="other", requires_grad=True)
    found = [x.shape, x.size(), x.stride(), x.mT.stride(), sizes_of(x), empty.shape, (x * x).shape]
    for lengths in found:
        assert type(lengths) in (tuple, plugrad.Size)
        assert all(type(item) is int for item in lengths)
    assert type(x.size(1)) is type(x.storage_offset()) is type(x.numel()) is int
    assert repr(x.shape) == "plugrad.Size([1, 3])"
    assert (x.sum(0) + x).T.tolist() == [[2.0], [4.0], [6.0]]
    x.expand(4, 3).sum().backward()
    assert x.grad.tolist() == [[4.0, 4.0, 4.0]]
    with pytest.raises(RuntimeError, match=r"\(1x3 and 1x3\)|shape|size") as caught:
        x @ x
    assert "other." not in str(caught.value)
    assert "int64" not in str(caught.value)


def test_a_length_that_is_no_number_is_named() -> None:
    class Lazy:
        dtype = np.dtype(np.float32)
        shape = (float("nan"), 3)

    class LazyBackend(Backend):
        def from_host(self, array: Any, index: int) -> Any:
            return Lazy()

    activate_backend(LazyBackend("lazy", array_type=Lazy))
    try:
        x = plugrad.tensor([1.0], device="lazy")
        for ask in (lambda: x.shape, lambda: x.dim(), lambda: repr(x)):
            with pytest.raises(TypeError, match=r"Lazy must have whole numbers .* got \(nan, 3\)"):
                ask()
    finally:
        deactivate_backend("lazy")
