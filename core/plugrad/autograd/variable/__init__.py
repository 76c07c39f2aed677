"""`Variable`: the former name of tensors with a gradient, now an alias for Tensor."""

from __future__ import annotations

# Interpreted: its class has a metaclass.
from typing import Any

from plugrad.autograd.variable.properties import data_of, set_requires_grad
from plugrad.dispatch.caller import warn_at_caller
from plugrad.tensor.base import TensorBase, tensor_class
from plugrad.tensor.calls.arguments import type_name
from plugrad.tensor.creation.from_data import tensor

__all__ = ["Variable", "VariableMeta"]


class VariableMeta(type):
    """Makes every Tensor an instance of Variable, and the engine one attribute of both."""

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, TensorBase)

    @property
    def _execution_engine(cls) -> Any:
        return tensor_class()._execution_engine

    @_execution_engine.setter
    def _execution_engine(cls, engine: Any) -> None:
        tensor_class()._execution_engine = engine


class Variable(metaclass=VariableMeta):
    """`Variable(tensor)` is a new leaf that shares the tensor's memory; prefer `detach()`.

    Raises:
        TypeError: not a Tensor.

    >>> import plugrad
    >>> plugrad.autograd.Variable(plugrad.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if volatile:
            warn_at_caller(
                "volatile was removed and now has no effect. Use `with plugrad.no_grad():` "
                "instead.",
            )
        if data is None:
            data = tensor([])
        if not isinstance(data, TensorBase):
            raise TypeError(f"Variable data has to be a tensor, but got {type_name(data)}")
        made = data_of(data)
        if requires_grad:
            set_requires_grad(made, True)
        return made
