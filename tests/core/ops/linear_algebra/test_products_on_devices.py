"""Gradients of products on devices, where looking for zeros would wait for the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad.testing import gradcheck, gradgradcheck

FACTORS = {
    "no zero": [2.0, -1.5, 3.0, 0.5],
    "one zero": [2.0, 0.0, 3.0, 0.5],
    "first": [0.0, 1.5, 3.0, 0.5],
    "last": [2.0, 1.5, 3.0, 0.0],
    "two zeros": [2.0, 0.0, 3.0, 0.0],
    "all": [0.0, 0.0, 0.0, 0.0],
    "one factor": [0.0],
    "none": [],
}
PRODUCTS: dict[str, Callable[[Any], Any]] = {
    "prod": lambda x: x.prod(),
    "prod, dim": lambda x: x.prod(0, keepdim=True),
    "cumprod": lambda x: x.cumprod(0),
}


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
@pytest.mark.parametrize("factors", FACTORS.values(), ids=FACTORS)
def test_gradients_are_right_with_zeros(
    second_backend: str, product: Callable[[Any], Any], factors: list[float]
) -> None:
    x = plugrad.tensor(
        [[each, each + 1] for each in factors],
        dtype=plugrad.float64,
        device=second_backend,
    ).reshape(len(factors), 2)
    x.requires_grad_()
    assert gradcheck(product, x)
    assert gradgradcheck(product, x)


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
def test_no_value_is_asked_for(
    second_backend: str, product: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any) -> Any:
        raise AssertionError("the device was waited for")

    x = plugrad.tensor([2.0, 0.0, 3.0], device=second_backend, requires_grad=True)
    y = product(x)
    ones = plugrad.ones_like(y)
    for name in ("item", "__bool__", "__float__", "tolist"):
        monkeypatch.setattr(plugrad.Tensor, name, refuse)
    y.backward(ones)
    monkeypatch.undo()
    assert x.grad.shape == x.shape
