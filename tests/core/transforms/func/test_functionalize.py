"""`functionalize`. Oracle: the function itself, and the operators that are left of it."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad.func import functionalize, grad, vmap

X = plugrad.arange(6.0).reshape(2, 3)


def writes(x: plugrad.Tensor) -> tuple[plugrad.Tensor, plugrad.Tensor]:
    y = x.clone()
    y.add_(1)
    row = y[0]
    row[1:].mul_(3)
    y.t_()
    y[2] = 7
    y.diagonal().copy_(plugrad.tensor([1, 2]))
    return y, row


def test_results_are_those_of_the_function_itself() -> None:
    found, wanted = functionalize(writes)(X), writes(X)
    assert [item.tolist() for item in found] == [item.tolist() for item in wanted]


def test_no_operator_writes() -> None:
    graph = plugrad.capture(functionalize(writes), X)
    assert [node.op.name for node in graph.nodes if node.op.schema.mutates] == []


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_arguments_that_are_written_to_change_in_the_end(remove: str) -> None:
    def write(x: plugrad.Tensor, same: plugrad.Tensor) -> plugrad.Tensor:
        x[0].add_(10)
        return same.sum()

    x = X.clone()
    assert functionalize(write, remove=remove)(x, x).item() == X.sum().item() + 30
    assert x.tolist() == [[10.0, 11.0, 12.0], [3.0, 4.0, 5.0]]


def test_it_nests_with_other_transforms() -> None:
    def loss(x: plugrad.Tensor) -> plugrad.Tensor:
        y = x.clone()
        y[0].mul_(2)
        return (y * y).sum()

    assert grad(functionalize(loss))(X).tolist() == grad(loss)(X).tolist()
    assert functionalize(grad(loss))(X).tolist() == grad(loss)(X).tolist()
    assert vmap(functionalize(loss))(X).tolist() == vmap(loss)(X).tolist()


def test_random_writes_and_writes_to_what_is_captured() -> None:
    captured = plugrad.zeros(2)

    def fill(x: plugrad.Tensor) -> plugrad.Tensor:
        captured.add_(1)
        return x.clone().uniform_(2, 3)

    found = functionalize(fill)(X)
    assert bool(((found >= 2) & (found < 3)).all())
    assert captured.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="hand that one to the function as an argument"):
        functionalize(lambda x: captured.add_(x))(plugrad.ones(2))


def test_anything_may_be_returned() -> None:
    found: Any = functionalize(lambda x: {"n": 3, "x": x})(X)
    assert found["n"] == 3
    assert found["x"] is X


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(RuntimeError, match="received invalid argument for remove=views"):
        functionalize(writes, remove="views")
