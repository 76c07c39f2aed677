"""Modes, and blocks in which overrides are off."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import plugrad
from plugrad import Tensor
from plugrad.overrides import (
    BasePlugradFunctionMode,
    DisablePlugradFunction,
    DisablePlugradFunctionSubclass,
    PlugradFunctionMode,
    TorchFunctionMode,
    resolve_name,
)


class Log(PlugradFunctionMode):
    def __init__(self, log: list[Any], name: str = "") -> None:
        self.log = log
        self.name = name

    def __plugrad_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        self.log.append((self.name + str(resolve_name(func))).replace("plugrad.", ""))
        return func(*args, **kwargs)


class Refusing(PlugradFunctionMode):
    def __plugrad_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return NotImplemented


class Kept(Tensor):
    pass


def test_a_mode_sees_functions_methods_operators_and_properties() -> None:
    x = plugrad.ones(2)
    log: list[Any] = []
    with Log(log):
        plugrad.zeros(2)
        plugrad.tensor([1.0])
        plugrad.sum(x)
        x.sum()
        x + 1
        x.shape  # noqa: B018  # seen by the mode
        plugrad.nn.functional.relu(x)
    x + 1
    assert log == [
        *("zeros", "tensor", "sum", "Tensor.sum", "Tensor.add", "Tensor.shape.__get__"),
        "nn.functional.relu",
    ]


def test_a_mode_sees_a_function_that_has_an_argument_of_its_name() -> None:
    log: list[Any] = []
    x = plugrad.tensor([1.0, 3.0])
    with Log(log):
        result = plugrad.threshold(x, 2, -1)
    assert log == ["threshold"]
    assert result.tolist() == [-1.0, 3.0]


def test_inside_of_its_work_a_mode_is_off() -> None:
    log: list[Any] = []

    class Doubling(PlugradFunctionMode):
        def __plugrad_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            log.append(func.__name__)
            return func(*args, **kwargs) * 2

    with Doubling():
        x = plugrad.ones(1)
    assert x.tolist() == [2.0]
    assert log == ["ones"]


def test_modes_nest_from_the_inside_out() -> None:
    log: list[Any] = []
    with Log(log, "outer "), Log(log, "inner "):
        plugrad.zeros(1)
    assert log == ["inner zeros", "outer zeros"]


def test_the_same_mode_may_be_entered_twice() -> None:
    log: list[Any] = []
    mode = Log(log)
    with mode, mode:
        plugrad.zeros(1)
    assert log == ["zeros", "zeros"]


def test_a_mode_comes_before_the_classes() -> None:
    log: list[Any] = []
    x = Kept([1.0])
    with Log(log):
        assert type(x.mul(2)) is Kept
    assert log == ["Tensor.mul"]


def test_not_implemented_goes_on_to_the_classes() -> None:
    class Answer:
        @classmethod
        def __plugrad_function__(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return 42

    with Refusing():
        assert plugrad.relu(Answer()) == 42


def test_not_implemented_by_all() -> None:
    with Refusing(), pytest.raises(TypeError, match=r"no implementation found .* nor in mode"):
        plugrad.zeros(1)


def test_a_mode_without_an_implementation() -> None:
    with PlugradFunctionMode(), pytest.raises(NotImplementedError):
        plugrad.zeros(1)


def test_a_base_mode_lets_through() -> None:
    log: list[Any] = []
    with Log(log), BasePlugradFunctionMode():
        assert plugrad.zeros(1).tolist() == [0.0]
    assert log == ["zeros", "Tensor.tolist"]


def test_pytorchs_names_for_modes() -> None:
    class Theirs(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return func.__name__

    with Theirs():
        assert plugrad.zeros(1) == "zeros"


def test_errors_leave_the_stack_as_it_was() -> None:
    with pytest.raises(ZeroDivisionError), Log([]):
        raise ZeroDivisionError
    assert plugrad.overrides._get_current_function_mode_stack() == []


def test_a_mode_belongs_to_its_thread() -> None:
    log: list[Any] = []
    with Log(log):
        thread = threading.Thread(target=lambda: plugrad.zeros(1))
        thread.start()
        thread.join()
    assert log == []


def test_kernels_and_decompositions_are_not_seen() -> None:
    x = plugrad.ones(3, 3)
    log: list[Any] = []
    with Log(log):
        plugrad.einsum("ij,jk->ik", x, x)
        plugrad.nn.functional.layer_norm(x, (3,))
        plugrad.std(x)
    assert log == ["einsum", "nn.functional.layer_norm", "std"]


def test_disabling_subclasses() -> None:
    x = Kept([1.0])
    log: list[Any] = []
    with Log(log), DisablePlugradFunctionSubclass():
        assert type(x + 1) is Tensor
    assert log == ["Tensor.add"]
    assert type(x + 1) is Kept


def test_disabling_everything() -> None:
    x = Kept([1.0])
    log: list[Any] = []
    with Log(log), DisablePlugradFunction():
        assert type(x + 1) is Tensor
        with DisablePlugradFunctionSubclass():
            assert type(x + 1) is Tensor
    assert log == []


def test_disabled_tensor_likes_are_no_tensors() -> None:
    class Answer:
        @classmethod
        def __plugrad_function__(cls, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return 42

    with DisablePlugradFunction(), pytest.raises(TypeError, match="must be Tensor, not Answer"):
        plugrad.relu(Answer())
