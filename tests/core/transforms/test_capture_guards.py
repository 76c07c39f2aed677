"""What calls of a graph must agree in with the example."""

from __future__ import annotations

import re
from typing import Any

import pytest

import plugrad
from plugrad.transforms.capture import GuardError


def function(x: Any, scale: float = 2.0) -> Any:
    return x * scale


def fails(graph: Any, expected: str, *args: Any, **kwargs: Any) -> None:
    with pytest.raises(GuardError, match=re.escape(expected)):
        graph(*args, **kwargs)


def test_shape_dtype_and_device() -> None:
    graph = plugrad.capture(function, plugrad.ones(2))
    fails(graph, "the shape of x0 to be (2,), found (3,)", plugrad.ones(3))
    wide = plugrad.ones(2, dtype=plugrad.float64)
    fails(graph, "the dtype of x0 to be plugrad.float32, found plugrad.float64", wide)
    elsewhere = plugrad.ones(2, device="meta")
    fails(graph, "the device of x0 to be cpu, found meta", elsewhere)
    fails(graph, "x0 to be a tensor, found float", 1.0)


def test_other_values_and_their_nesting() -> None:
    graph = plugrad.capture(function, plugrad.ones(2), scale=3.0)
    fails(graph, "the argument kwargs['scale'] to be 3.0, found 4.0", plugrad.ones(2), scale=4.0)
    fails(graph, "the arguments to be ((*,), {'scale': *}), found ((*,), {})", plugrad.ones(2))
    tensor = plugrad.ones(2)
    fails(graph, "to be 3.0, found a tensor", plugrad.ones(2), scale=tensor)


def test_modes() -> None:
    graph = plugrad.capture(function, plugrad.ones(2))
    with plugrad.no_grad():
        fails(graph, "the mode to be grad mode, found no_grad", plugrad.ones(2))
    with plugrad.inference_mode():
        fails(graph, "the mode to be grad mode, found inference mode", plugrad.ones(2))
        graph = plugrad.capture(function, plugrad.ones(2))
        assert graph(plugrad.ones(2)).is_inference()


def test_one_tensor_in_two_places() -> None:
    x, y = plugrad.ones(2), plugrad.ones(2)
    apart = plugrad.capture(lambda x, y: x.add_(y), x, y)
    fails(apart, "x1 to be a tensor of its own, found the same tensor as x0", x, x)
    together = plugrad.capture(lambda x, y: x.add_(y), x, x)
    fails(together, "x1 to be the same tensor as x0, found a tensor of its own", x, y)


def test_requires_grad_counts_where_a_backward_pass_runs() -> None:
    def gradient(x: Any) -> Any:
        (x * x).sum().backward()

    x = plugrad.ones(2, requires_grad=True)
    graph = plugrad.capture(gradient, x)
    fails(graph, "requires_grad of x0 to be True, found False", plugrad.ones(2))
    graph(x)
    assert x.grad.tolist() == [2.0, 2.0]
    fails(graph, "x0.grad to be None, found a tensor", x)


def test_they_can_be_read() -> None:
    graph = plugrad.capture(function, plugrad.ones(2), 3.0)
    assert list(graph.guards) == [
        "arguments: ((*, *), {})",
        "mode: grad mode",
        "x0: float32[2]",
        "args[1] == 3.0",
    ]
