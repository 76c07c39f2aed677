"""Backends with arrays in several places define how written tensors keep their place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import plugrad
from plugrad.plugins.strides import set_placement
from plugrad.tensor.aliasing.placement import PLACEMENT


@pytest.fixture
def asked() -> Iterator[list[str]]:
    """The calls for an array: two backends, and the second one moves it."""
    before = PLACEMENT.keep, PLACEMENT.keeps
    PLACEMENT.keep, PLACEMENT.keeps = None, []
    found: list[str] = []

    def first(array: Any, former: Any) -> Any:
        found.append("first")
        return array

    def second(array: Any, former: Any) -> Any:
        found.append("second")
        return array.copy()  # in another place

    set_placement(first)
    set_placement(second)
    set_placement(first)
    yield found
    PLACEMENT.keep, PLACEMENT.keeps = before


def test_all_backends_are_asked_once_where_a_gradient_goes(asked: list[str]) -> None:
    leaf = plugrad.ones(2, 3, requires_grad=True)
    plugrad.autograd.backward((leaf * 2).sum())
    assert asked == ["first", "second"]
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [[2.0] * 3] * 2


def test_a_second_gradient_goes_to_where_the_first_is(asked: list[str]) -> None:
    leaf = plugrad.ones(2, 3, requires_grad=True)
    for _ in range(2):
        (leaf * 2).sum().backward()
    assert asked == ["first", "second"] * 2
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [[4.0] * 3] * 2
