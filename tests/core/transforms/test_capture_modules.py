"""Captured graphs record the modules of their operators. Oracle: how the modules are nested."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import plugrad
from plugrad.transforms.capture import Graph

nn = plugrad.nn

X = plugrad.ones(2, 3)


def model() -> Any:
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 2), nn.Tanh()))


def scopes(graph: Graph) -> dict[str, str]:
    """The name of the innermost module by operator; a dash outside of all."""
    return {node.name: node.scope[-1][0] if node.scope else "-" for node in graph.nodes}


def test_operators_know_the_modules_that_called_them() -> None:
    graph = plugrad.capture(model(), X)
    assert scopes(graph) == {"linear": "0", "relu": "1", "linear_1": "2.0", "tanh": "2.1"}
    outer = (("", "Sequential"), ("2", "Sequential"))
    assert graph.nodes[-1].scope == (*outer, ("2.1", "Tanh"))


def test_operators_between_modules_are_in_none() -> None:
    layers = model()
    graph = plugrad.capture(lambda x: layers[0](x + 1).exp(), X)
    assert scopes(graph) == {"add": "-", "linear": "", "exp": "-"}


def test_what_runs_backward_is_in_the_module_of_its_forward() -> None:
    layers = model()

    def step(x: Any) -> Any:
        loss = layers(x).sum()
        loss.backward()
        return loss.detach()

    graph = plugrad.capture(step, X)
    known = scopes(graph)
    assert {node.name: node.backward for node in graph.nodes}["tanh_backward"]
    assert not graph.nodes[0].backward
    assert known["tanh_backward"] == "2.1"
    assert known["threshold_backward"] == "1"
    backward = [where for name, where in known.items() if name.startswith("linear_backward")]
    assert backward == ["2.0", "0"]
    assert known["sum"] == "-"


def test_a_module_that_is_called_twice_has_one_name() -> None:
    layer = nn.Linear(3, 3)
    graph = plugrad.capture(lambda x: layer(layer(x)), X)
    assert [node.scope for node in graph.nodes] == [(("", "Linear"),)] * 2


def test_modules_that_no_module_holds_are_named_by_their_type() -> None:
    first, *others = (nn.Linear(3, 3) for _ in range(3))
    graph = plugrad.capture(lambda x: others[1](others[0](first(x))), X)
    assert list(scopes(graph).values()) == ["", "Linear", "Linear_2"]
    labels = [constant.label for constant in graph.held.values()]
    assert labels[::2] == ["weight", "Linear.weight", "Linear_2.weight"]


def test_a_module_without_a_place_in_the_one_around_it_is_named_after_both() -> None:
    inner = nn.Linear(3, 3)

    class Outer(nn.Module):
        def forward(self, x: Any) -> Any:
            return inner(x) * 2

    graph = plugrad.capture(nn.Sequential(Outer()), X)
    assert scopes(graph) == {"linear": "0.Linear", "mul": "0"}


def test_constants_are_labelled_by_the_modules_that_hold_them() -> None:
    scale = plugrad.tensor([2.0])
    layers = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).eval()
    graph = plugrad.capture(lambda x: layers(x) * scale, X)
    labels = {constant.label for constant in graph.held.values()}
    assert {"0.weight", "0.bias", "1.weight", "1.running_mean", ""} <= labels
    (own,) = (constant for constant in graph.held.values() if constant.value is scale)
    assert own.label == ""


def test_files_and_passes_keep_the_modules(tmp_path: Path) -> None:
    graph = plugrad.capture(model(), X)
    graph.save(tmp_path / "graph.npz")
    loaded = Graph.load(tmp_path / "graph.npz")
    assert not any(node.backward for node in loaded.nodes)
    assert [node.scope for node in loaded.nodes] == [node.scope for node in graph.nodes]
    assert [one.label for one in loaded.held.values()] == [one.label for one in graph.held.values()]
    assert scopes(graph.dead_code().common_subexpressions()) == scopes(graph)
