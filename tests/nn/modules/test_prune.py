"""Pruning and old names of initialisers: masks, names and errors of PyTorch."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import plugrad
from plugrad import nn


@pytest.fixture
def torch(torch_oracle: Any) -> Any:
    # PyTorch does not load it by itself.
    importlib.import_module("torch.nn.utils.prune")
    return torch_oracle


PROGRAMS = [
    "prune.identity(net[0], 'bias')",
    "prune.random_unstructured(net[0], 'weight', 5)",
    "prune.l1_unstructured(net[0], 'weight', 0.3)",
    "prune.l1_unstructured(net[0], 'weight', 3, importance_scores=-net[0].weight)",
    "prune.random_structured(net[0], 'weight', 2, 1)",
    "prune.ln_structured(net[0], 'weight', 0.5, 2, 0)",
    "prune.ln_structured(net[0], 'weight', 1, float('inf'), -1)",
    "prune.custom_from_mask(net[0], 'bias', lib.tensor([1, 0, 1, 0]))",
    "prune.global_unstructured([(net[0], 'weight'), (net[1], 'bias')], prune.L1Unstructured, "
    "amount=8)",
    "prune.ln_structured(prune.l1_unstructured(net[0], 'weight', 0.3), 'weight', 1, 1, 0)",
    "prune.l1_unstructured(prune.random_structured(net[0], 'weight', 1, 0), 'weight', 0.5)",
]


@pytest.mark.parametrize("expression", PROGRAMS)
def test_pruned_module_is_torchs(torch: Any, expression: str) -> None:
    found = []
    for library in (plugrad, torch):
        library.manual_seed(8)
        prune = library.nn.utils.prune
        net = library.nn.Sequential(library.nn.Linear(3, 4), library.nn.Linear(4, 3))
        eval(expression, {"prune": prune, "net": net, "lib": library})
        assert prune.is_pruned(net)
        x = library.linspace(1, 2, 6).reshape(2, 3)
        net(x).sum().backward()
        found.append(
            [
                list(net.state_dict()),
                [value.tolist() for name, value in net.state_dict().items() if "mask" in name],
                [name for name, _ in net.named_parameters()],
                [(parameter.grad != 0).tolist() for parameter in net.parameters()],
            ]
        )
    assert found[0] == found[1]


def test_pruning_is_made_permanent() -> None:
    prune = nn.utils.prune
    layer = nn.Linear(2, 2)
    weight = layer.weight
    prune.l1_unstructured(layer, "weight", 1)
    assert layer.weight_orig is weight
    prune.l1_unstructured(layer, "weight", 2)
    pruned = layer.weight.detach().clone()
    assert int((pruned == 0).sum()) == 3
    prune.remove(layer, "weight")
    assert layer.weight is weight
    assert plugrad.equal(layer.weight, pruned)
    assert not prune.is_pruned(layer)
    assert list(layer.state_dict()) == ["bias", "weight"]


@pytest.mark.parametrize(
    "expression",
    [
        "prune.remove(layer, 'weight')",
        "prune.l1_unstructured(layer, 'weight', -1)",
        "prune.l1_unstructured(layer, 'weight', 1.5)",
        "prune.l1_unstructured(layer, 'weight', 'a')",
        "prune.l1_unstructured(layer, 'weight', 100)",
        "prune.ln_structured(layer, 'bias', 1, 2, 0)",
        "prune.ln_structured(layer, 'weight', 1, 2, 3)",
        "prune.global_unstructured([(layer, 'weight')], prune.Identity, importance_scores=3)",
        "prune.global_unstructured(3, 3)",
    ],
)
def test_wrong_arguments_raise_torchs_words(torch: Any, expression: str) -> None:
    messages = []
    for library in (plugrad, torch):
        layer = library.nn.Linear(3, 4)
        with pytest.raises((ValueError, TypeError, IndexError)) as caught:
            eval(expression, {"prune": library.nn.utils.prune, "layer": layer})
        messages.append(str(caught.value).replace("plugrad.", "torch."))
        assert sorted(layer.state_dict()) == ["bias", "weight"]
    assert messages[0] == messages[1]


def test_initialisers_have_their_old_names() -> None:
    with pytest.warns(FutureWarning, match=r"`nn.init.constant` is now deprecated in favor of"):
        assert nn.init.constant(plugrad.empty(2), 3.0).tolist() == [3.0, 3.0]
