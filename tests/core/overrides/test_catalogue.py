"""The lists of functions, their names, and the functions for code that should be overridable."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import plugrad
from plugrad import overrides
from plugrad.overrides import (
    get_ignored_functions,
    get_overridable_functions,
    get_testing_overrides,
    handle_plugrad_function,
    has_plugrad_function,
    has_plugrad_function_unary,
    has_plugrad_function_variadic,
    is_tensor_method_or_property,
    resolve_name,
    wrap_plugrad_function,
)


class Like:
    @classmethod
    def __plugrad_function__(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return ("handled", func, args, kwargs)


class Kept(plugrad.Tensor):
    pass


def test_names() -> None:
    class Some(plugrad.Tensor):
        pass

    assert resolve_name(plugrad.add) == "plugrad.add"
    assert resolve_name(plugrad.einsum) == "plugrad.einsum"
    assert resolve_name(plugrad.Tensor.add) == "plugrad.Tensor.add"
    assert resolve_name(plugrad.Tensor.size) == "plugrad.Tensor.size"
    assert resolve_name(plugrad.Tensor.grad.__get__) == "plugrad.Tensor.grad.__get__"
    assert resolve_name(plugrad.Tensor.grad.__set__) == "plugrad.Tensor.grad.__set__"
    assert resolve_name(plugrad.nn.functional.relu) == "plugrad.nn.functional.relu"
    assert resolve_name(5) is None
    assert resolve_name([]) is None


def test_overridable_and_ignored_functions() -> None:
    found = get_overridable_functions()
    assert {plugrad.add, plugrad.stack, plugrad.einsum, plugrad.max} <= set(found[plugrad])
    assert {plugrad.Tensor.add, plugrad.Tensor.size, plugrad.Tensor.__add__} <= set(
        found[plugrad.Tensor]
    )
    assert found[plugrad.Tensor.shape] == [plugrad.Tensor.shape.__get__]
    ignored = get_ignored_functions()
    assert {plugrad.zeros, plugrad.tensor, plugrad.manual_seed} <= ignored
    everything = {func for functions in found.values() for func in functions}
    assert not everything & ignored


def test_every_overridable_function_can_be_called_for() -> None:
    stand_ins = get_testing_overrides()
    assert stand_ins[plugrad.add](1, 2) == -1
    assert plugrad.Tensor.add in stand_ins
    named = list(inspect.signature(stand_ins[plugrad.tensordot]).parameters)
    assert named == ["a", "b", "dims", "out"]


def test_readers_of_properties_know_their_names() -> None:
    class Some(plugrad.Tensor):
        pass

    assert plugrad.Tensor.grad_fn.fget.__name__ == "grad_fn"


def test_methods_and_properties() -> None:
    assert is_tensor_method_or_property(plugrad.Tensor.add)
    assert is_tensor_method_or_property(plugrad.Tensor.shape.__get__)
    assert not is_tensor_method_or_property(plugrad.add)


def test_has_plugrad_function() -> None:
    x = plugrad.ones(1)
    assert not has_plugrad_function((x, 1))
    assert has_plugrad_function((x, Like()))
    assert has_plugrad_function([[Like()]])
    assert has_plugrad_function_unary(Kept([1.0]))
    assert not has_plugrad_function_unary(x)
    assert has_plugrad_function_variadic(x, Kept([1.0]))
    with overrides.DisablePlugradFunctionSubclass():
        assert not has_plugrad_function_unary(Kept([1.0]))
    with overrides.BasePlugradFunctionMode():
        assert has_plugrad_function_unary(x)
    with pytest.raises(TypeError, match="expected a sequence"):
        has_plugrad_function(5)


def test_handling_by_hand() -> None:
    def mine(a: Any, *, flag: bool = False) -> Any:
        if has_plugrad_function_unary(a):
            return handle_plugrad_function(mine, (a,), a, flag=flag)
        return "plain"

    like = Like()
    assert mine(plugrad.ones(1)) == "plain"
    assert mine(like, flag=True) == ("handled", mine, (like,), {"flag": True})


def test_wrapping() -> None:
    @wrap_plugrad_function(lambda a, b=None: (a, b))
    def mine(a: Any, b: Any = None) -> Any:
        """Says so."""
        return "plain"

    like = Like()
    assert mine(1) == "plain"
    assert mine(1, like) == ("handled", mine, (1, like), {})
    assert mine.__doc__ == "Says so."


def test_pytorchs_names() -> None:
    assert overrides.has_torch_function is has_plugrad_function
    assert overrides.handle_torch_function is handle_plugrad_function
    assert overrides.TorchFunctionMode is overrides.PlugradFunctionMode
    assert overrides.DisableTorchFunctionSubclass is overrides.DisablePlugradFunctionSubclass


def test_functions_of_nn_are_overridable() -> None:
    functional = plugrad.nn.functional
    like = Like()
    for name in ("linear", "relu", "cross_entropy", "pad", "dropout", "layer_norm"):
        func = getattr(functional, name)
        assert func(like, 1) == ("handled", func, (like, 1), {})
    assert functional.softmax(like, dim=0)[2:] == ((like,), {"dim": 0})
