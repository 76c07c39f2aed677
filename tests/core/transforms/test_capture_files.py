"""Graphs in files: what was saved does what was captured. Oracle: the graph itself."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.transforms.capture import Graph, GuardError

nn = plugrad.nn


def again(graph: Graph, folder: Path) -> Graph:
    path = folder / "graph.npz"
    graph.save(path)
    return Graph.load(path)


def test_a_model(tmp_path: Path) -> None:
    plugrad.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.GELU(), nn.Flatten(), nn.Linear(8, 3)
    ).eval()
    x = plugrad.randn(2, 1, 4, 4)
    with plugrad.no_grad():
        graph = plugrad.capture(model, x)
        loaded = again(graph, tmp_path)
        assert str(loaded) == str(graph)
        assert plugrad.equal(loaded(x), model(x))
        with pytest.raises(GuardError, match="the shape of x0"):
            loaded(plugrad.randn(1, 1, 4, 4))
    assert plugrad.equal(loaded.optimized().constants["c0"], model[0].weight)


def test_a_training_step_with_random_numbers(tmp_path: Path) -> None:
    weight = plugrad.tensor([[0.5, 1.0], [2.0, -1.0]], requires_grad=True)

    def step(x: Any, options: dict[str, Any]) -> Any:
        weight.grad = None
        loss = nn.functional.dropout(x @ weight, 0.5).mul(options["scale"]).sum()
        loss.backward()
        with plugrad.no_grad():
            weight.sub_(weight.grad, alpha=0.1)
        return {"loss": loss.detach(), "more": [1, float("inf"), None]}

    x = plugrad.ones(1, 2)
    graph = plugrad.capture(step, x, {"scale": 0.1})
    loaded = again(graph, tmp_path)
    own = loaded.constants["c0"]
    assert own is not weight
    assert own.requires_grad
    for run in (graph, loaded):
        plugrad.manual_seed(3)
        for _ in range(3):
            run.constants["c0"].grad = None  # as it was when the step was captured
            found = run(x, {"scale": 0.1})
        assert found["more"] == [1, float("inf"), None]
    assert plugrad.equal(own, weight)
    assert plugrad.equal(own.grad, weight.grad)


@pytest.mark.parametrize("dtype", [plugrad.bfloat16, plugrad.int8, plugrad.complex64])
def test_constants_of_any_dtype(dtype: Any, tmp_path: Path) -> None:
    constant = plugrad.ones(2, 3, dtype=dtype).t()
    loaded = again(plugrad.capture(lambda x: x + constant, constant), tmp_path)
    assert plugrad.equal(loaded(constant), constant + constant)


def test_what_no_file_holds(tmp_path: Path) -> None:
    pair = namedtuple("pair", "a b")
    x = plugrad.ones(2)
    with pytest.raises(TypeError, match="can hold a pair"):
        again(plugrad.capture(lambda p: p.a + p.b, pair(x, x)), tmp_path)
    state = plugrad.zeros(2, 2)
    row = state[0]
    with pytest.raises(ValueError, match="the constants c0 and c1 share memory"):
        again(plugrad.capture(lambda x: state + row + x, x), tmp_path)
    np.savez(tmp_path / "other.npz", a=np.ones(2))
    with pytest.raises(ValueError, match="is not a graph saved by plugrad"):
        Graph.load(tmp_path / "other.npz")
