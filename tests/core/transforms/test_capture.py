"""What `plugrad.capture` records of arguments, constants, writes, gradients and random numbers."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest

import plugrad
from plugrad.transforms.capture import CaptureError
from tests.core.transforms.rerun import names, rerun

Pair = namedtuple("Pair", "first second")


def test_nodes_say_what_was_called() -> None:
    graph = plugrad.capture(lambda x: plugrad.rand(2, 3).mul_(2).sum(1, keepdim=True) + x, ones())
    rand, _, total, _ = graph.nodes
    assert [node.name for node in graph.nodes] == ["rand", "mul", "sum", "add"]
    assert rand.op == plugrad.ops.plugrad.rand.default
    assert rand.args == ((2, 3),)
    assert rand.kwargs["dtype"] is plugrad.float32
    assert rand.random
    assert graph.nodes[1].writes == ("rand",)
    assert total.meta == ((2, 1), plugrad.float32, plugrad.device("cpu"))


def ones(*shape: int) -> Any:
    return plugrad.ones(*(shape or (2,)))


def test_arguments_and_results_may_be_nested() -> None:
    def function(pair: Any, *, table: dict[str, Any]) -> Any:
        return Pair(pair[0] + table["a"], [table["b"][0], (pair[1], 3, None)])

    graph = rerun(function, (ones(), 2.0), table={"b": [ones(3)], "a": ones()})
    result = graph((ones(), 2.0), table={"a": ones(), "b": [ones(3)]})
    assert type(result) is Pair
    assert result.second[1] == (2.0, 3, None)
    assert str(graph).startswith("def function(args_0, *, table):")


def test_tensors_from_elsewhere_are_constants_by_reference() -> None:
    factor = plugrad.tensor([2.0, 3.0])
    graph = rerun(lambda x: x * factor, ones())
    assert graph.constants["c0"] is factor
    factor.fill_(7.0)
    assert graph(ones()).tolist() == [7.0, 7.0]


def test_tensors_of_numbers_are_new_in_each_run() -> None:
    def function(x: Any) -> Any:
        made = plugrad.tensor([1.0, 2.0])
        made.add_(x)
        return made

    graph = rerun(function, ones())
    assert graph.mutations == ()
    first = graph(ones())
    graph(ones())
    assert first.tolist() == [2.0, 3.0]


def test_writes_to_inputs_and_constants_are_mutations() -> None:
    total = plugrad.zeros(3)

    def function(x: Any, y: Any) -> Any:
        x[0].mul_(2)
        total.add_(x[0])
        y.exp().add_(1)
        return y.view(-1)

    x, y = ones(2, 3), ones(3)
    graph = rerun(function, x, y)
    assert graph.mutations == ("x0", "c0")
    assert total.tolist() == [0.0, 0.0, 0.0]
    graph(x, y)
    assert total.tolist() == [2.0, 2.0, 2.0]
    assert x.tolist() == [[2.0, 2.0, 2.0], [1.0, 1.0, 1.0]]


def test_running_statistics_are_mutations_that_no_schema_tells() -> None:
    norm = plugrad.nn.BatchNorm1d(3)
    graph = rerun(norm, plugrad.randn(4, 3))
    written = {id(graph.constants[name]) for name in graph.mutations}
    assert {id(norm.running_mean), id(norm.running_var)} <= written
    assert norm.running_mean.tolist() == [0.0, 0.0, 0.0]


def test_data_of_a_tensor_from_elsewhere_is_its_memory() -> None:
    weight = plugrad.ones(2, requires_grad=True)

    def function(x: Any) -> Any:
        weight.data.add_(x)
        return x

    graph = rerun(function, ones())
    assert weight.tolist() == [1.0, 1.0]
    graph(ones())
    assert weight.tolist() == [2.0, 2.0]


def test_operators_that_change_the_shape_of_an_input() -> None:
    x = plugrad.arange(6.0).reshape(2, 3)
    graph = rerun(lambda x: x.t_() + 1, x)
    assert x.shape == (2, 3)
    graph(x)
    assert x.shape == (3, 2)


def test_nothing_is_left_behind() -> None:
    weight = plugrad.ones(2, requires_grad=True)
    weight.grad = plugrad.ones(2)
    plugrad.manual_seed(3)
    state = plugrad.get_rng_state().tolist()

    def function(x: Any) -> Any:
        x.mul_(plugrad.rand(2))
        (weight * x).sum().backward()
        return x

    x = ones()
    plugrad.capture(function, x)
    assert x.tolist() == [1.0, 1.0]
    assert x._version == 0
    assert weight.grad.tolist() == [1.0, 1.0]
    assert weight.grad._version == 0
    assert plugrad.get_rng_state().tolist() == state


def test_nothing_is_left_behind_by_what_raises() -> None:
    def function(x: Any) -> Any:
        x.add_(1)
        raise KeyError("mine")

    x = ones()
    with pytest.raises(KeyError, match="mine"):
        plugrad.capture(function, x)
    assert x.tolist() == [1.0, 1.0]


def test_random_numbers_are_drawn_anew() -> None:
    generator = plugrad.Generator()
    graph = rerun(lambda x: x * plugrad.rand(2, generator=generator), ones())
    assert any(value is generator for value in graph.constants.values())
    generator.manual_seed(1)
    first, second = graph(ones()), graph(ones())
    assert not plugrad.equal(first, second)
    generator.manual_seed(1)
    assert plugrad.equal(graph(ones()), first)


def test_results_require_grad_when_inputs_do() -> None:
    graph = plugrad.capture(lambda x: (x * x).sum(), ones())
    x = plugrad.tensor([2.0, 3.0], requires_grad=True)
    graph(x).backward()
    assert x.grad.tolist() == [4.0, 6.0]
    assert not graph(ones()).requires_grad


def test_modes_within_the_function() -> None:
    def function(x: Any) -> Any:
        with plugrad.no_grad():
            y = x * 2
        return y, x * y

    x = plugrad.ones(2, requires_grad=True)
    graph = rerun(function, x)
    assert [result.requires_grad for result in graph(x)] == [False, True]
    assert "    with plugrad.no_grad():\n        mul" in str(graph)


def test_composite_operators_are_recorded_as_their_parts() -> None:
    assert names(rerun(lambda x: plugrad.square(x), ones())) == ["pow.Tensor_Scalar"]


def test_defaults_are_those_of_the_capture() -> None:
    x = ones()
    graph = plugrad.capture(lambda x: x + plugrad.zeros(2), x)
    plugrad.set_default_dtype(plugrad.float64)
    try:
        assert graph(x).dtype is plugrad.float32
    finally:
        plugrad.set_default_dtype(plugrad.float32)


def test_other_data_is_refused() -> None:
    def function(x: Any) -> Any:
        x.data = plugrad.zeros(2)
        return x

    with pytest.raises(CaptureError, match=r"x0 gets other contents by an assignment to its data"):
        plugrad.capture(function, ones())


def test_a_graph_is_captured_within_another() -> None:
    inner = plugrad.capture(lambda x: x * 2, ones())
    assert names(rerun(lambda x: inner(x) + 1, ones())) == ["mul.Scalar", "add.Scalar"]


def test_functions_only() -> None:
    with pytest.raises(TypeError, match=r"capture\(\): expected a function, got int"):
        plugrad.capture(3)  # type: ignore[arg-type]  # on purpose
