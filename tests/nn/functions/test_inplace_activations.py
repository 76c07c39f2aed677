"""`inplace=True`: the input is overwritten, and the gradients are correct."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad.nn import functional as F

CASES: list[tuple[str, tuple[float, ...]]] = [
    ("relu", ()),
    ("relu6", ()),
    ("leaky_relu", (0.2,)),
    ("elu", (1.5,)),
    ("celu", (1.5,)),
    ("selu", ()),
    ("silu", ()),
    ("mish", ()),
    ("hardtanh", (-0.5, 0.5)),
    ("hardsigmoid", ()),
    ("hardswish", ()),
    ("threshold", (0.1, 20.0)),
]


def gradients(x: Any, function: Any) -> tuple[Any, Any]:
    y = function(x * 2)
    (first,) = plugrad.autograd.grad(y.sin().sum(), x, create_graph=True)
    (second,) = plugrad.autograd.grad(first.sum(), x)
    return first, second


@pytest.mark.parametrize(("name", "args"), CASES)
def test_gradients_are_those_of_the_activation(name: str, args: tuple[float, ...]) -> None:
    activation = getattr(F, name)
    x = plugrad.linspace(-3, 3, 12, dtype=plugrad.float64).requires_grad_()
    expected = gradients(x, lambda y: activation(y, *args))
    found = gradients(x, lambda y: activation(y, *args, inplace=True))
    for one, other in zip(found, expected, strict=True):
        assert plugrad.allclose(one, other)


@pytest.mark.parametrize(("name", "args"), CASES)
def test_the_input_is_overwritten(name: str, args: tuple[float, ...]) -> None:
    activation = getattr(F, name)
    x = plugrad.linspace(-3, 3, 12)
    expected = activation(x, *args)
    assert activation(x, *args, inplace=True) is x
    assert plugrad.equal(x, expected)


@pytest.mark.parametrize(("name", "args"), CASES)
def test_of_a_view_the_base_is_overwritten(name: str, args: tuple[float, ...]) -> None:
    activation = getattr(F, name)
    x = plugrad.linspace(-3, 3, 12, dtype=plugrad.float64).requires_grad_()
    base = x.clone()
    activation(base[:6], *args, inplace=True)
    base.sum().backward()
    y = x.detach().requires_grad_()
    (activation(y[:6], *args).sum() + y[6:].sum()).backward()
    assert plugrad.allclose(x.grad, y.grad)


@pytest.mark.parametrize(("name", "args"), CASES)
def test_a_leaf_is_refused(name: str, args: tuple[float, ...]) -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        getattr(F, name)(plugrad.ones(2, requires_grad=True), *args, inplace=True)
