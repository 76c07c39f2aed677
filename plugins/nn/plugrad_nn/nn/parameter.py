"""Parameter and Buffer: tensors that a Module registers."""

from __future__ import annotations

import importlib
from typing import Any, SupportsIndex

import plugrad
from plugrad import Tensor
from plugrad.overrides import disabled_plugrad_function

__all__ = [
    "Buffer",
    "Parameter",
    "is_lazy",
]


class Parameter(Tensor):
    """A tensor that becomes a parameter of the module it is assigned to.

    Args:
        data: the values; the parameter shares their memory. ``None`` gives an empty tensor.
        requires_grad: whether the parameter is trained; note that ``no_grad`` does not change it.

    >>> import plugrad
    >>> weight = plugrad.nn.Parameter(plugrad.ones(2))
    >>> weight.requires_grad, weight.is_leaf
    (True, True)
    """

    _printed_as = "tensor"
    # Operations on parameters give plain tensors.
    __plugrad_function__ = disabled_plugrad_function  # type: ignore[assignment]  # no method

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        values = plugrad.empty(0) if data is None else data
        made: Parameter = Tensor._make_subclass(cls, values, requires_grad)
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: `__new__` made the tensor, and a subclass's may take any arguments."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) in memo:
            copied: Parameter = memo[id(self)]
            return copied
        result = type(self)(self.detach().clone(), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self, *, tensor_contents: object = None) -> str:
        # As a plain tensor, because the printed name of the class is part of the layout.
        plain = Tensor._make_subclass(Tensor, self, self.requires_grad)
        return f"Parameter containing:\n{plain!r}"

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        # The user's attributes are the third part of a plain tensor's reduction.
        attached = super().__reduce_ex__(protocol)[2]
        return _rebuild_parameter, (type(self), self.detach(), self.requires_grad), attached


def _rebuild_parameter(cls: type[Parameter], data: Tensor, requires_grad: bool) -> Parameter:
    return cls(data, requires_grad)


class Buffer(Tensor):
    """A tensor that becomes a buffer of the module it is assigned to.

    Args:
        data: the values; the buffer shares their memory. ``None`` gives an empty tensor.
        persistent: whether it is in the module's state dict.

    >>> import plugrad
    >>> layer = plugrad.nn.Linear(1, 1)
    >>> layer.calls = plugrad.nn.Buffer(plugrad.zeros(()))
    >>> [name for name, _ in layer.named_buffers()]
    ['calls']
    """

    _printed_as = "tensor"
    persistent: bool
    # Operations on buffers give plain tensors.
    __plugrad_function__ = disabled_plugrad_function  # type: ignore[assignment]  # no method

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        values = plugrad.empty(0) if data is None else data
        made: Buffer = Tensor._make_subclass(cls, values.detach(), values.requires_grad)
        made.persistent = persistent
        return made

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        """Nothing to do: `__new__` made the tensor; this keeps Tensor's own initialiser out."""


def is_lazy(param: object) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, Tensor) and hasattr(type(param), "materialize")


def __getattr__(name: str) -> Any:
    if name in ("UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin"):
        return getattr(importlib.import_module("plugrad_nn.nn.modules.uninitialized"), name)
    raise AttributeError(f"module 'plugrad.nn.parameter' has no attribute {name!r}")
