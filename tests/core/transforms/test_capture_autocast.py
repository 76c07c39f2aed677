"""Captures within and around regions that autocast."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad.transforms.capture import GuardError
from tests.core.transforms.rerun import names, rerun


def test_casts_are_nodes() -> None:
    weight = plugrad.ones(3, 3, requires_grad=True)

    def function(x: Any) -> Any:
        with plugrad.autocast("cpu", dtype=plugrad.bfloat16):
            y = x @ weight
            return (y @ weight).float().softmax(-1), y

    graph = rerun(function, plugrad.ones(2, 3))
    assert names(graph)[:3] == ["_to_copy", "_to_copy", "mm"]
    assert [t.dtype for t in graph(plugrad.ones(2, 3))] == [plugrad.float32, plugrad.bfloat16]
    # One cast of the weight is enough.
    assert names(graph.optimized()).count("_to_copy") < names(graph).count("_to_copy")


def test_a_step_that_autocasts() -> None:
    weight = plugrad.ones(3, 3, requires_grad=True)

    def step(x: Any) -> Any:
        weight.grad = None
        with plugrad.autocast("cpu", dtype=plugrad.bfloat16):
            loss = plugrad.nn.functional.mse_loss(x @ weight, x)
        loss.backward()
        return loss.detach()

    graph = rerun(step, plugrad.ones(2, 3))
    graph(plugrad.ones(2, 3))
    assert weight.grad.dtype is plugrad.float32


def test_the_region_around_a_graph_is_guarded() -> None:
    def function(x: Any) -> Any:
        return x @ x

    with plugrad.autocast("cpu", dtype=plugrad.bfloat16):
        graph = rerun(function, plugrad.ones(2, 2))
        assert graph(plugrad.ones(2, 2)).dtype is plugrad.bfloat16
        assert plugrad.is_autocast_enabled("cpu")
    assert "autocast: plugrad.bfloat16 on cpu" in list(graph.guards)
    with pytest.raises(GuardError, match=r"autocast to be plugrad.bfloat16 on cpu, found off"):
        graph(plugrad.ones(2, 2))
