"""Subclasses of Tensor: their default override, their own, and those that opt out."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import plugrad
from plugrad import Tensor
from plugrad.overrides import disabled_plugrad_function


class Kept(Tensor):
    """Keeps its class by the default override."""


class KeptBelow(Kept):
    pass


class Unrelated(Tensor):
    pass


class Silent(Tensor):
    __plugrad_function__ = disabled_plugrad_function


class WithData(Tensor):
    """As many users write theirs."""

    @staticmethod
    def __new__(cls: Any, data: Any, label: str) -> Any:
        return Tensor._make_subclass(cls, plugrad.as_tensor(data))

    def __init__(self, data: Any, label: str) -> None:
        super().__init__()
        self.label = label


def test_results_keep_the_class() -> None:
    x = Kept([1.0, 2.0])
    results = [x + 1, 1 - x, -x, x.sum(), x[0], plugrad.exp(x), x * plugrad.ones(2), x.T, x.data]
    assert {type(result) for result in results} == {Kept}
    assert [type(result) for result in x.split(1)] == [Kept, Kept]
    assert type(x.shape) is plugrad.Size
    assert x.tolist() == [1.0, 2.0]


def test_named_results_keep_their_names() -> None:
    found = Kept([1.0, 2.0]).max(0)
    assert type(found.values) is Kept
    assert found.indices.item() == 1


def test_the_lower_class_wins() -> None:
    x, y = Kept([1.0]), KeptBelow([2.0])
    assert type(x + y) is KeptBelow
    assert type(y + x) is KeptBelow


def test_unrelated_classes_do_not_mix() -> None:
    with pytest.raises(TypeError, match=r"on types that implement __plugrad_function__: \[.*Kept"):
        plugrad.add(Kept([1.0]), Unrelated([1.0]))


def test_results_stay_in_the_graph() -> None:
    x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    y = x.as_subclass(Kept)
    (y * y).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0]


def test_grad_is_not_converted() -> None:
    x = Kept([1.0]).requires_grad_()
    with plugrad.overrides.DisablePlugradFunctionSubclass():
        x.grad = plugrad.ones(1)
    assert type(x.grad) is Tensor


def test_a_class_without_override_gives_plain_tensors() -> None:
    assert type(Silent([1.0]) + 1) is Tensor
    assert type(Silent([1.0]) + Kept([1.0])) is Kept


def test_parameters_give_plain_tensors() -> None:
    parameter = plugrad.nn.Parameter(plugrad.ones(2))
    assert type(parameter + 1) is Tensor
    assert type(parameter + Kept([1.0, 1.0])) is Kept


def test_own_override_by_either_name() -> None:
    class Named(Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return (func.__name__, super().__torch_function__(func, types, args, kwargs))

    class Below(Named):
        pass

    class Again(Named):
        @classmethod
        def __plugrad_function__(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return "again"

    name, result = Named([1.0]) + 1
    assert (name, type(result)) == ("add", Named)
    assert (Below([1.0]) + 1)[0] == "add"
    assert Again([1.0]) + 1 == "again"
    assert Again.__torch_function__(None, (), (), {}) == "again"


def test_super_calls_the_default() -> None:
    seen = []

    class Logged(Tensor):
        @classmethod
        def __plugrad_function__(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            seen.append(func)
            return super().__plugrad_function__(func, types, args, kwargs)

    y = Logged([1.0]).mul(2)
    assert seen == [Tensor.mul]
    assert type(y) is Logged


def test_as_subclass_is_a_view_in_the_graph() -> None:
    x = plugrad.ones(2, requires_grad=True)
    y = x.as_subclass(Kept)
    assert type(y) is Kept
    assert y._is_view()
    assert type(y.as_subclass(Tensor)) is Tensor
    with pytest.raises(TypeError, match="does not inherit from Tensor"):
        x.as_subclass(int)
    with pytest.raises(TypeError, match=r"cls must be a type \(got int\)"):
        x.as_subclass(5)


def test_make_subclass_is_a_leaf() -> None:
    x = plugrad.ones(2)
    y = Tensor._make_subclass(Kept, x, True)
    assert (type(y), y.is_leaf, y.requires_grad) == (Kept, True, True)
    with pytest.raises(TypeError, match="does not inherit from Tensor"):
        Tensor._make_subclass(int, x)
    with pytest.raises(TypeError, match=r"argument 'data' \(position 2\) must be Tensor, not int"):
        Tensor._make_subclass(Kept, 5)


def test_constructor_of_a_class_with_data() -> None:
    x = WithData([1.0, 2.0], "mine")
    assert (type(x), x.label, x.tolist()) == (WithData, "mine", [1.0, 2.0])


@pytest.mark.parametrize("cls", [Tensor, Kept])
def test_constructor_as_pytorchs(cls: Any) -> None:
    assert cls([1, 2]).dtype is plugrad.float32
    assert tuple(cls(2, 3).shape) == (2, 3)
    assert tuple(cls().shape) == (0,)
    assert tuple(cls(plugrad.Size([3])).shape) == (3,)
    assert type(cls([1.0])) is cls
    source = plugrad.ones(2, dtype=plugrad.int64)
    shared = cls(source)
    assert shared is not source
    source[0] = 5
    assert shared.tolist() == [5, 1]


def test_constructor_errors() -> None:
    with pytest.raises(TypeError, match="invalid data type 'str'"):
        Tensor("text")
    with pytest.raises(TypeError, match=r"new\(\): data must be a sequence \(got float\)"):
        Tensor(1.5)
    with pytest.raises(TypeError, match=r"invalid combination of arguments - got \(list, list\)"):
        Tensor([1], [2])


def test_copies_keep_class_and_attributes() -> None:
    x = Kept([1.0])
    x.label = "mine"
    for copied in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert (type(copied), copied.label, copied.tolist()) == (Kept, "mine", [1.0])


def test_prints_under_its_name() -> None:
    assert repr(Kept([1.0])) == "Kept([1.])"


def test_attributes_of_an_interpreted_class_do_not_clash() -> None:
    x = Kept([1.0])
    x.dtype_of_mine = 3
    assert x.dtype is plugrad.float32
    assert (x + 1).dtype is plugrad.float32
