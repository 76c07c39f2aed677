"""Containers: indexing, changing and iterating (closed forms)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

import plugrad
from plugrad import nn


def test_sequential_applies_modules_in_order() -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2), nn.ReLU())
    assert tuple(net(plugrad.ones(3, 2, 2)).shape) == (3, 2)


def test_sequential_takes_names_from_an_ordered_dict() -> None:
    net = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    assert isinstance(net.b, nn.Tanh)
    assert list(net[1:]._modules) == ["b"]


@pytest.mark.parametrize("container", [nn.Sequential, lambda *m: nn.ModuleList(m)])
def test_numbered_containers_index_like_lists(container: type) -> None:
    layers = [nn.ReLU(), nn.Tanh(), nn.SiLU()]
    net = container(*layers)
    assert len(net) == 3
    assert list(net) == layers
    assert net[-1] is layers[2]
    assert list(net[:2]) == layers[:2]
    with pytest.raises(IndexError, match="index 3 is out of range"):
        net[3]


@pytest.mark.parametrize("container", [nn.Sequential, lambda *m: nn.ModuleList(m)])
def test_numbered_containers_change_like_lists(container: type) -> None:
    a, b, c, d = nn.ReLU(), nn.Tanh(), nn.SiLU(), nn.GELU()
    net = container(a, b)
    net.append(c)
    net.insert(1, d)
    assert list(net) == [a, d, b, c]
    del net[0]
    assert list(net) == [d, b, c]
    assert list(net._modules) == ["0", "1", "2"]
    net[0] = a
    assert net.pop(0) is a
    net.extend([d])
    assert list(net) == [b, c, d]


def test_sequential_adds_to_sequential() -> None:
    a, b = nn.ReLU(), nn.Tanh()
    assert list(nn.Sequential(a) + nn.Sequential(b)) == [a, b]


def test_module_list_adds_modules() -> None:
    a, b = nn.ReLU(), nn.Tanh()
    both = nn.ModuleList([a])
    both += [b]
    assert list(both) == [a, b]
    with pytest.raises(TypeError, match="should be called with an iterable, but got int"):
        both.extend(3)  # type: ignore[arg-type]  # the error under test


def test_module_list_is_not_callable() -> None:
    with pytest.raises(NotImplementedError, match="ModuleList"):
        nn.ModuleList([nn.ReLU()])(plugrad.ones(1))


def test_module_dict_behaves_like_a_dict() -> None:
    table = nn.ModuleDict({"act": nn.ReLU()})
    table["lin"] = nn.Linear(1, 1)
    assert "lin" in table
    assert len(table) == 2
    assert list(table) == ["act", "lin"] == list(table.keys())
    assert [name for name, _ in table.named_parameters()] == ["lin.weight", "lin.bias"]
    assert isinstance(table.pop("act"), nn.ReLU)
    assert [type(module) for _, module in table.items()] == [nn.Linear]


def test_parameter_list_registers_and_converts_tensors() -> None:
    listed = nn.ParameterList([nn.Parameter(plugrad.ones(2)), plugrad.zeros(3)])
    listed.append(plugrad.zeros(1))
    assert [name for name, _ in listed.named_parameters()] == ["0", "1", "2"]
    assert all(isinstance(parameter, nn.Parameter) for parameter in listed)
    assert listed[-1].numel() == 1
    assert len(listed[:2]) == 2


def test_a_parameter_list_holds_anything(torch_oracle: Any) -> None:
    lists = [lib.nn.ParameterList([lib.ones(2), "a", 1.5]) for lib in (plugrad, torch_oracle)]
    ours, theirs = lists
    ours.append({"b": 1})
    theirs.append({"b": 1})
    assert repr(ours) == repr(theirs).replace("torch.", "plugrad.")
    assert len(ours) == len(theirs) == 4
    assert list(ours.state_dict()) == list(theirs.state_dict()) == ["0"]
    assert list(ours)[1:] == list(theirs)[1:]
    assert len(list(plugrad.nn.ParameterList({"a": 1, "b": 2})[1:])) == 1
