"""`torch.utils._pytree`, `torch.ops.aten` and `torch._C._functorch` as packages use them. Oracle:
PyTorch."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

import plugrad
from plugrad._C import _functorch
from plugrad_as_torch.lookup import find
from plugrad_as_torch.own.ops import aten

Pair = namedtuple("Pair", "a b")
TREE = {
    "b": [1, (2, Pair(3, [4]))],
    "a": OrderedDict(z=None),
    "d": defaultdict(int, q=5),
    "e": deque([6], 3),
}


def test_paths_are_pytorchs(torch_oracle: ModuleType) -> None:
    theirs = import_module("torch.utils._pytree")

    def shown(module: Any) -> list[Any]:
        leaves, _ = module.tree_flatten_with_path(TREE)
        return [(module.keystr(path), repr(path), leaf) for path, leaf in leaves]

    class Ours:
        tree_flatten_with_path = staticmethod(find("torch.utils._pytree", "tree_flatten_with_path"))
        keystr = staticmethod(find("torch.utils._pytree", "keystr"))

    assert shown(Ours) == shown(theirs)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("list", [1, 2]),
        ("tuple", (1, 2)),
        ("dict", {"b": 1, "a": 2}),
        ("namedtuple", Pair(1, 2)),
        ("ordereddict", OrderedDict(b=1, a=2)),
        ("defaultdict", defaultdict(int, b=1)),
        ("deque", deque([1, 2], 4)),
    ],
)
def test_containers_are_taken_apart_as_in_pytorch(
    kind: str, value: Any, torch_oracle: ModuleType
) -> None:
    flatten = find("torch.utils._pytree", f"_{kind}_flatten")
    theirs = getattr(import_module("torch.utils._pytree"), f"_{kind}_flatten")
    assert flatten(value) == theirs(value)
    again = find("torch.utils._pytree", f"_{kind}_unflatten")(*flatten(value))
    assert (again, type(again)) == (value, type(value))


def test_an_operator_that_is_missing_is_a_key_and_refuses_calls() -> None:
    assert {aten._pin_memory.default: 1}[aten._pin_memory.default] == 1
    assert aten.sort.stable is aten.sort.stable
    with pytest.raises(NotImplementedError, match=r"torch\.ops\.aten\._pin_memory\.default"):
        aten._pin_memory.default(plugrad.ones(1))
    assert not hasattr(aten, "nope")
    assert not hasattr(aten.sort, "nope")


def test_tensors_inside_of_vmap_and_grad_are_known() -> None:
    seen = []

    def ask(x: plugrad.Tensor) -> plugrad.Tensor:
        seen.append((_functorch.is_batchedtensor(x), _functorch.is_gradtrackingtensor(x)))
        return x.sum()

    plugrad.vmap(ask)(plugrad.ones(2, 3))
    plugrad.func.grad(ask)(plugrad.ones(2))
    ask(plugrad.ones(2))
    assert seen == [(True, False), (False, True), (False, False)]
