"""Native classes from outside: what mypyc needs of them is not reachable, half of an object is an
error, and subclasses are freed."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
from plugrad._generated.methods import TensorMethods
from plugrad.graph.node import Node

# Compiled functions that native code alone may call; the names of fields, which are harmless, stay.
INTERNAL = {"__internal_mypyc_setup", "__mypyc_defaults_setup"}


def native_classes() -> list[type]:
    modules = [module for name, module in sys.modules.items() if name.startswith("plugrad.")]
    classes = {item for module in modules for item in vars(module).values() if type(item) is type}
    return [cls for cls in classes if cls.__module__.startswith("plugrad.")]


def test_no_class_has_a_method_of_the_compilers() -> None:
    assert [
        (cls, name) for cls in native_classes() for name in INTERNAL if hasattr(cls, name)
    ] == []


HALF: dict[str, Callable[[Any], Any]] = {
    "repr": repr,
    "shape": lambda half: half.shape,
    "dtype": lambda half: half.dtype,
    "add": lambda half: half + 1,
    "radd": lambda half: plugrad.ones(2) + half,
    "out": lambda half: plugrad.add(plugrad.ones(2), 1, out=half),
    "sum": lambda half: half.sum(),
    "cat": lambda half: plugrad.cat([half]),
    "index": lambda half: plugrad.ones(2)[half],
    "backward": lambda half: half.backward(),
    "numpy": lambda half: half.numpy(),
    "copy": copy.copy,
    "pickle": pickle.dumps,
}


@pytest.mark.parametrize("use", sorted(HALF))
def test_a_tensor_without_contents_is_an_attribute_error(use: str) -> None:
    with pytest.raises(AttributeError):
        HALF[use](TensorMethods.__new__(plugrad.Tensor))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_nodes_are_not_copied(copied: Callable[[Any], Any]) -> None:
    x = plugrad.ones(2, requires_grad=True)
    node = (x * 2).grad_fn
    for given in (node, node.next_functions[0][0]):
        with pytest.raises(TypeError, match=f"cannot copy or pickle '{given.name()}'"):
            copied(given)


def test_a_node_without_contents_is_an_attribute_error() -> None:
    half = Node.__new__(Node)
    for name in ("next_functions", "metadata"):
        with pytest.raises(AttributeError):
            getattr(half, name)


def test_limits_and_operators_are_copied_and_pickled() -> None:
    for made in (
        plugrad.finfo(plugrad.float32),
        plugrad.iinfo(plugrad.int8),
        plugrad.ops.plugrad.add,
        plugrad.ops.plugrad.add.Tensor,
        plugrad.float32,
        plugrad.device("cpu"),
        plugrad.Size([2, 3]),
    ):
        for other in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            assert type(other) is type(made)
            assert str(other) == str(made)


def test_a_tensor_does_not_take_its_fields_from_a_state() -> None:
    x = plugrad.ones(2)
    x.__setstate__({"_keyset": -1, "_backend_array": None, "note": "mine"})
    assert x.tolist() == [1.0, 1.0]
    assert x.note == "mine"
    assert copy.copy(x).note == "mine"


def test_a_subclass_may_have_attributes_of_any_name() -> None:
    class Image(plugrad.Tensor):
        """As medical images are: with an array of its own making, and what goes with it."""

        def __init__(self, data: object) -> None:
            self._meta = {"affine": 1}
            self._shared = self._sizes = self.storage_state = "mine"

        @property
        def array(self) -> Any:
            # Reads elements, so it comes back here if the core calls it.
            return self.detach().numpy() + 1

        @array.setter
        def array(self, value: object) -> None:
            raise AssertionError("the core has asked the subclass for its elements")

    x = Image([1.0, 2.0])
    x.requires_grad_()
    y = (x * x).sum() + plugrad.cat([x, x])[0]
    y.backward()
    assert type(y) is Image
    assert plugrad.Tensor.tolist(x.grad) == [3.0, 4.0]
    assert x.array.tolist() == [2.0, 3.0]
    assert x._meta == {"affine": 1}
    with plugrad.no_grad():
        x.copy_(plugrad.tensor([3.0, 4.0]))
    assert x.tolist() == [3.0, 4.0]
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(_plain(x)))):
        assert other.tolist() == [3.0, 4.0]


def _plain(x: plugrad.Tensor) -> plugrad.Tensor:
    return x.detach().as_subclass(plugrad.Tensor)


def test_a_tensor_takes_attributes_of_any_name() -> None:
    x = plugrad.ones(2, requires_grad=True)
    for name in ("_meta", "_shared", "_sizes", "meta", "level", "note"):
        setattr(x, name, name)
    (x * 2).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]
    assert x.shape == (2,)
    assert copy.copy(x)._meta == "_meta"


def subclass_in_use() -> type[plugrad.Tensor]:
    class Mine(plugrad.Tensor):
        pass

    Mine.instance = Mine([1.0, 2.0])
    x = Mine([1.0, 2.0]).requires_grad_()
    for made in (x + x, 2.0 * x, x.max(0)[0], plugrad.cat([x, x]), x[0], x.as_subclass(Mine)):
        repr(made)
    (x * x).sum().backward()
    copy.deepcopy(x.detach())
    return Mine


def override_in_use() -> type[plugrad.Tensor]:
    class Overriding(plugrad.Tensor):
        @classmethod
        def __plugrad_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return super().__plugrad_function__(func, types, args, kwargs)

    plugrad.add(Overriding([1.0]), Overriding([2.0])) * 2
    return Overriding


def function_in_use() -> type[plugrad.autograd.Function]:
    class Double(plugrad.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    Double.apply(plugrad.ones(2, requires_grad=True)).sum().backward()
    return Double


@pytest.mark.parametrize("use", [subclass_in_use, override_in_use, function_in_use])
def test_a_subclass_dies_after_use(use: Callable[[], type]) -> None:
    cls = weakref.ref(use())
    gc.collect()
    assert cls() is None
