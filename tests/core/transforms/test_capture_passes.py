"""Passes remove what they should, and nothing that somebody sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad.transforms.capture import Graph
from tests.core.transforms.rerun import names, rerun


def graph_of(function: Callable[..., Any], *args: Any) -> Graph:
    return rerun(function, *(args or (plugrad.tensor([1.0, 2.0]),)))


def test_dead_code_goes() -> None:
    def function(x: Any) -> Any:
        x.exp().view(2).add_(1)
        return x.sin()

    assert names(graph_of(function).dead_code()) == ["sin"]


def test_writes_that_are_seen_stay() -> None:
    seen = plugrad.zeros(2)

    def function(x: Any) -> Any:
        y = x.clone()
        view = y.view(2)
        view.add_(1)  # seen through y
        seen.add_(x)  # seen outside
        x[0].zero_()
        return y

    graph = graph_of(function)
    assert names(graph.dead_code()) == names(graph)


def test_unused_random_numbers_stay() -> None:
    def function(x: Any) -> Any:
        plugrad.rand(3)
        return x * plugrad.rand(2)

    assert names(graph_of(function).dead_code()).count("rand") == 2


def test_constants_that_nothing_needs_go() -> None:
    other = plugrad.ones(2)
    graph = graph_of(lambda x: (x * other, x)[1])
    assert graph.constants
    assert not graph.dead_code().constants


def test_common_subexpressions_become_one() -> None:
    def function(x: Any) -> Any:
        return (x.exp() + 1) * (x.exp() + 1)

    assert names(graph_of(function).common_subexpressions()) == ["exp", "add.Scalar", "mul.Tensor"]


def test_views_become_one() -> None:
    graph = graph_of(lambda x: x.view(2, 1) * x.view(2, 1))
    assert names(graph.common_subexpressions()) == ["view", "mul.Tensor"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.exp(), x.exp()),  # two tensors for the caller
        lambda x: x.exp().add_(1) * x.exp(),  # one of them is written to
        lambda x: (x.exp() * x.add_(1)) * x.exp(),  # what they are of is written to
        lambda x: x.view(2).exp() * x.view(2).add_(1) * x.view(2).exp(),  # through a view
        lambda x: plugrad.rand(2) * plugrad.rand(2) * x,
        lambda x: (x * 1, x * 1.0),  # equal numbers, but not the same
    ],
)
def test_what_is_not_the_same_stays_apart(function: Callable[[Any], Any]) -> None:
    graph = graph_of(function)
    before = [name for name in names(graph) if name != "view"]
    after = [name for name in names(graph.common_subexpressions()) if name != "view"]
    assert after == before


def test_grad_modes_stay_apart() -> None:
    def function(x: Any) -> Any:
        with plugrad.no_grad():
            y = x.exp()
        return x.exp() * y

    x = plugrad.ones(2, requires_grad=True)
    assert names(graph_of(function, x).common_subexpressions()).count("exp") == 2


def test_what_depends_on_numbers_is_computed_once() -> None:
    def function(x: Any) -> Any:
        return x * (plugrad.arange(2) * 2 + plugrad.tensor([1, 2]))

    folded = graph_of(function).fold_constants()
    assert names(folded) == ["mul.Tensor"]
    (value,) = folded.constants.values()
    assert value.tolist() == [1, 4]


def test_what_is_written_to_or_returned_is_not_computed_once() -> None:
    def function(x: Any) -> Any:
        y = plugrad.zeros(2)
        y.add_(x)
        return y, plugrad.ones(2), plugrad.rand(2)

    graph = graph_of(function)
    assert names(graph.fold_constants()) == names(graph)


def test_tensors_from_elsewhere_are_taken_for_constants_when_asked() -> None:
    weight = plugrad.tensor([3.0, 4.0])

    graph = graph_of(lambda x: x * weight.exp())
    assert names(graph.fold_constants()) == ["exp", "mul.Tensor"]
    assert names(graph.fold_constants(freeze=True)) == ["mul.Tensor"]
    weight.requires_grad_()
    assert names(graph.fold_constants(freeze=True)) == ["exp", "mul.Tensor"]


def test_optimized_is_all_of_them() -> None:
    def function(x: Any) -> Any:
        x.sin()
        factor = plugrad.arange(2) + 1
        return (x * factor).exp() + (x * factor).exp()

    assert names(graph_of(function).optimized()) == ["mul.Tensor", "exp", "add.Tensor"]
