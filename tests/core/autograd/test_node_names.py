"""What nodes and their classes are called, and what a number beside a tensor leads to."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import plugrad


def leaf(lib: Any) -> Any:
    return lib.ones(3, requires_grad=True)


def described(node: Any) -> str:
    """The graph below a node by the names of the classes."""
    if node is None:
        return "None"
    below = ", ".join(described(function) for function, _ in node.next_functions)
    return f"{type(node).__name__}({below})"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x * x, "MulBackward0(AccumulateGrad(), AccumulateGrad())"),
        (lambda x: x.exp().sum(), "SumBackward0(ExpBackward0(AccumulateGrad()))"),
        (lambda x: x.max(0)[0], "MaxBackward0(AccumulateGrad())"),
        (lambda x: x + 1, "AddBackward0(AccumulateGrad(), None)"),
        (lambda x: 1 - x, "RsubBackward1(AccumulateGrad())"),
        (lambda x: x - 1, "SubBackward0(AccumulateGrad(), None)"),
        (lambda x: 2 * x, "MulBackward0(AccumulateGrad(), None)"),
        (lambda x: x / 2, "DivBackward0(AccumulateGrad(), None)"),
        (lambda x: x**2, "PowBackward0(AccumulateGrad())"),
        (lambda x: x.clone().mul_(2), "MulBackward0(CloneBackward0(AccumulateGrad()), None)"),
    ],
)
def test_the_class_of_a_node_has_its_name(lib: Any, function: Any, expected: str) -> None:
    node = function(leaf(lib)).grad_fn
    assert described(node) == expected
    assert type(node).__name__ == node.name()


def test_a_view_of_a_base_that_was_written_to(lib: Any) -> None:
    base = leaf(lib).clone()
    view = base[:2]
    base.mul_(2)
    assert type(view.grad_fn).__name__ == "AsStridedBackward0"
    view += 1
    assert type(base.grad_fn).__name__ == "CopySlices"


def test_a_gradient_that_is_recorded_is_a_copy(lib: Any) -> None:
    x = leaf(lib)
    y = leaf(lib)
    with pytest.warns(UserWarning, match="create_graph=True"):
        (x * y).sum().backward(create_graph=True)
    node = x.grad.grad_fn
    assert type(node).__name__ == "CopyBackwards"
    assert node.next_functions[0] == (None, 0)
    x.grad = y.grad = None


def test_a_move_with_a_cast_is_one_node(torch_oracle: ModuleType) -> None:
    def nodes(lib: Any, move: Any) -> list[str]:
        node = move(lib, lib.ones(2, requires_grad=True)).grad_fn
        found = []
        while node is not None:
            found.append(node.name().rpartition("::")[2])
            node = node.next_functions[0][0] if node.next_functions else None
        return found

    for move in (
        lambda lib, x: x.to("meta", lib.float64),
        lambda lib, x: x.to(lib.ones(1, dtype=lib.float16, device="meta")),
        lambda lib, x: x.to("cpu", lib.float64, copy=True),
        lambda lib, x: x.to("cpu", copy=True),
        lambda lib, x: x.to(lib.float64),
    ):
        assert nodes(plugrad, move) == nodes(torch_oracle, move)
