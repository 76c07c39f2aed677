"""What a node returns has to look like what it is the gradient of: number, shape, dtype, device."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import plugrad
from tests.core.autograd.devices.graphs import leaf, then
from tests.core.autograd.devices.toy import ToyBackend

PLACES = ["cpu", "toy:0"]


@pytest.mark.parametrize("place", PLACES)
def test_a_shape_that_does_not_fit(toy: ToyBackend, place: str) -> None:
    x = then(leaf(place), lambda grad: plugrad.ones(3, dtype=plugrad.float64, device=place))
    words = (
        r"Function ThenBackward returned an invalid gradient at index 0 - got \[3\] but expected "
        r"shape compatible with \[2\]"
    )
    with pytest.raises(RuntimeError, match=words):
        x.sum().backward()


@pytest.mark.parametrize("place", PLACES)
def test_a_gradient_that_was_broadcast_is_summed(toy: ToyBackend, place: str) -> None:
    wide = plugrad.ones(3, 2, dtype=plugrad.float64, device=place)
    x = leaf(place)
    then(x, lambda grad: wide).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("place", PLACES)
def test_a_gradient_of_another_dtype_is_cast(toy: ToyBackend, place: str) -> None:
    x = leaf(place)
    then(x, lambda grad: grad.to(plugrad.float32)).sum().backward()
    assert x.grad.dtype is plugrad.float64


@pytest.mark.parametrize(
    ("place", "other"), [("cpu", "toy:0"), ("toy:0", "cpu"), ("toy:0", "toy:1")]
)
def test_a_gradient_on_another_device(toy: ToyBackend, place: str, other: str) -> None:
    x = then(leaf(place), lambda grad: grad.to(other))
    words = (
        "^Function ThenBackward returned an invalid gradient at index 0 - expected device "
        f"{place} but got {other}$"
    )
    with pytest.raises(RuntimeError, match=words):
        x.sum().backward()


@pytest.mark.parametrize(
    ("place", "other"), [("cpu", "toy:0"), ("toy:0", "cpu"), ("toy:0", "toy:1")]
)
def test_a_gradient_without_dimensions_is_moved(toy: ToyBackend, place: str, other: str) -> None:
    x = plugrad.tensor(3.0, device=place, requires_grad=True)
    then(x, lambda grad: grad.to(other)).backward()
    assert (x.grad.item(), str(x.grad.device)) == (1.0, place)


def test_a_root_s_gradient_on_another_device(toy: ToyBackend) -> None:
    x = leaf("toy:0")
    with pytest.raises(
        RuntimeError, match=r"^invalid gradient at index 0 - expected device toy:0 but got toy:1$"
    ):
        (x * 2).backward(plugrad.ones(2, dtype=plugrad.float64, device="toy:1"))


def message(lib: Any, other: str, root: bool) -> str:
    """The error for a gradient on the wrong device, of a library with PyTorch's interface."""

    class Astray(lib.autograd.Function):  # type: ignore[misc,name-defined]  # a library's
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0].to(other)

    x = lib.ones(2, requires_grad=True)
    y, grad = (x * 1, lib.ones(2, device=other)) if root else (Astray.apply(x).sum(), None)
    with pytest.raises(RuntimeError) as caught:
        y.backward(grad)
    return str(caught.value)


@pytest.mark.parametrize("root", [False, True])
def test_the_words_are_pytorch_s(toy: ToyBackend, torch_oracle: ModuleType, root: bool) -> None:
    theirs = message(torch_oracle, "meta", root)
    assert message(plugrad, "toy:1", root) == theirs.replace("meta", "toy:1")


@pytest.mark.parametrize("place", PLACES)
def test_the_number_of_gradients(toy: ToyBackend, place: str) -> None:
    x = leaf(place) * 1
    x.grad_fn.register_hook(lambda outputs, inputs: (*outputs, outputs[0]))
    with pytest.raises(RuntimeError, match="has returned an incorrect number of values"):
        x.sum().backward()
