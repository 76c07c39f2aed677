"""The interface of a node: numbers, metadata, calls."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import plugrad


def leaf(*values: float) -> Any:
    return plugrad.tensor(list(values) or [1.0, 2.0], dtype=plugrad.float64, requires_grad=True)


def test_a_node_requires_grad() -> None:
    assert (leaf() * 2).grad_fn.requires_grad


def test_metadata_is_one_dictionary() -> None:
    node = (leaf() * 2).grad_fn
    assert node.metadata == {}
    node.metadata["mine"] = 1
    assert node.metadata == {"mine": 1}


def test_input_metadata_tells_the_looks_of_every_output() -> None:
    x = plugrad.ones(3, 2, requires_grad=True)
    parts = x.unbind(1)
    found = parts[0].grad_fn._input_metadata
    assert isinstance(found, tuple)
    assert [metadata.shape for metadata in found] == [(3,), (3,)]
    assert found[0].dtype is plugrad.float32
    assert found[0].device == plugrad.device("cpu")
    assert not found[0].is_nested_tensor
    assert not found[0].is_cpp_nested_tensor


def test_input_metadata_has_a_place_for_outputs_that_are_no_tensors() -> None:
    class WithNone(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1, None

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0]

    node = WithNone.apply(leaf())[0].grad_fn
    assert [metadata.shape for metadata in node._input_metadata] == [(2,), ()]


def test_the_sequence_number_may_be_set() -> None:
    x = leaf()
    early = x * 2
    late = early.exp()
    node = early.grad_fn
    node._set_sequence_nr(late.grad_fn._sequence_nr() + 5)
    assert node._sequence_nr() == late.grad_fn._sequence_nr() + 5
    with pytest.raises(OverflowError, match="can't convert negative int to unsigned"):
        node._set_sequence_nr(-1)


def test_an_accumulator_with_another_number_still_runs_hooks() -> None:
    x = leaf(1.0)
    y = x * 2
    x.register_hook(lambda grad: grad * 10)
    y.grad_fn.next_functions[0][0]._set_sequence_nr(3)
    y.sum().backward()
    assert x.grad.tolist() == [20.0]


def test_a_node_may_be_called() -> None:
    x, w = leaf(), leaf()
    grad = plugrad.tensor([1.0, 10.0], dtype=plugrad.float64)
    assert [g.tolist() for g in (x * w).grad_fn(grad)] == [[1.0, 20.0], [1.0, 20.0]]
    assert x.exp().sin().grad_fn(grad).shape == (2,)
    assert (x * w).grad_fn(None) == (None, None)


def test_a_call_needs_one_tensor_or_none_for_each_input() -> None:
    node = (leaf() * leaf()).grad_fn
    with pytest.raises(TypeError, match="expected 1 arguments, got 0 instead"):
        node()
    with pytest.raises(TypeError, match="argument 0 is not a Variable"):
        node(1.0)


def test_nodes_are_equal_only_to_themselves() -> None:
    y = leaf() * 2
    assert y.grad_fn == y.grad_fn
    assert y.grad_fn != (leaf() * 2).grad_fn
    assert len({y.grad_fn, y.grad_fn}) == 1


def test_an_accumulator_knows_its_leaf() -> None:
    x = leaf()
    y = x * 2
    assert y.grad_fn.next_functions[0][0].variable is x


def test_recomputing_within_backward_is_told_when_inputs_are_chosen() -> None:
    seen: list[bool] = []
    x = leaf()
    y = x * 2
    y.register_hook(lambda grad: seen.append(plugrad.autograd._is_checkpoint_valid()))
    s = y.sum()
    s.backward(retain_graph=True)
    s.backward(inputs=[x], retain_graph=True)
    plugrad.autograd.grad(s, x)
    assert seen == [True, False, False]
    assert plugrad.autograd._is_checkpoint_valid()


EDGES: list[Callable[[Any, Any], Any]] = [
    lambda lib, x: x + 2,
    lambda lib, x: 2 - x,
    lambda lib, x: x - 2,
    lambda lib, x: x * 2,
    lambda lib, x: x / 2,
    lambda lib, x: x.clone().mul_(2),
    lambda lib, x: x**2,
    lambda lib, x: x % 2,
    lambda lib, x: x + lib.ones(2),
    lambda lib, x: lib.cat([x, lib.ones(2)]),
    lambda lib, x: x.sum(),
    lambda lib, x: lib.where(x > 0, x, lib.ones(2)),
]


@pytest.mark.parametrize("number", range(len(EDGES)))
def test_an_edge_for_every_operand_that_may_be_differentiated(
    number: int, torch_oracle: ModuleType
) -> None:
    def edges(lib: Any) -> list[Any]:
        x = lib.ones(2, requires_grad=True)
        found = EDGES[number](lib, x).grad_fn.next_functions
        return [
            (None if node is None else type(node).__name__ == "AccumulateGrad", n)
            for node, n in found
        ]

    assert edges(plugrad) == edges(torch_oracle)


def test_the_edge_of_a_number_gets_no_gradient() -> None:
    x = leaf(3.0)
    y = x * 2
    seen: list[Any] = []
    y.grad_fn.register_hook(lambda outputs, inputs: seen.append(outputs))
    y.sum().backward()
    assert [grad and grad.tolist() for grad in seen[0]] == [[2.0], None]
