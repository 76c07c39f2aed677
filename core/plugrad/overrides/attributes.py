"""Makes Tensor's attributes overridable, once there is something that overrides.

Operators check for overrides in compiled code. The attributes of the interpreted Tensor and of
TensorBase (`.shape`, `.grad`, `backward()`, `x[0]`...) do not: this module replaces them by
versions that check, so they cost nothing before.
"""

from __future__ import annotations

import functools
import sys
from types import FunctionType, MethodDescriptorType
from typing import Any

from plugrad._generated.methods import TensorMethods
from plugrad.tensor.base import TensorBase, tensor_class
from plugrad.tensor.calls.overridable import PROCEED, has_plugrad_function_unary, override_call

# Those that are not looked at: what makes objects, what must not depend on contents, and what does
# no more than call an operator.
NOT_OVERRIDABLE = frozenset(
    {
        *("__new__", "__init__", "__init_subclass__", "__hash__", "__iter__", "as_subclass"),
        *("__plugrad_function__", "__torch_function__", "_make_subclass"),
    }
)
# What TensorBase has, and not Tensor.
OF_THE_BASE = ("dtype", "device", "shape", "ndim")
# Two of these are fields, which have a text in the compiled core only.
_TEXTS = {
    "dtype": "The type of the elements, such as `plugrad.float32`.",
    "device": "Where the elements are, such as `device(type='cpu')`.",
}
METHODS_OF_THE_BASE = ("dim", "ndimension", "numel", "is_floating_point", "is_complex", "item")
# Interpreted, the core reads the fields of tensors by the same names as everybody.
INTERPRETED = isinstance(vars(TensorMethods)["item"], FunctionType)


def make_tensor_overridable() -> None:
    """Replace the attributes of Tensor."""
    cls = tensor_class()
    found = {name: value for name, value in vars(cls).items() if name not in NOT_OVERRIDABLE}
    for name in METHODS_OF_THE_BASE:
        found[name] = getattr(TensorMethods, name, None) or found[name]
    for name, value in found.items():
        if isinstance(value, (FunctionType, MethodDescriptorType)):
            setattr(cls, name, _overridable_method(name, value))
        elif isinstance(value, property):
            setattr(cls, name, _overridable_property(name, value.fget, value.fset, value.fdel))
    for name in OF_THE_BASE:
        native: Any = vars(TensorBase).get(name)
        if native is None:
            setattr(cls, name, _overridable_entry(name))
        else:
            get = native.__get__
            made = _overridable_property(name, get, None, None, INTERPRETED, native.__doc__)
            setattr(cls, name, made)


def _overridable_method(name: str, original: Any) -> Any:
    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        handled = override_call(method, (*args, *kwargs.values()), args, kwargs)
        return original(*args, **kwargs) if handled is PROCEED else handled

    method.__module__ = "plugrad"
    method.__qualname__ = f"Tensor.{name}"
    return method


def _overridable_property(
    name: str,
    getter: Any,
    setter: Any,
    deleter: Any,
    of_the_base: bool = False,
    text: str | None = None,
) -> property:
    def get(tensor: Any) -> Any:
        if of_the_base and _is_asked_by_core():
            return getter(tensor)
        if not has_plugrad_function_unary(tensor):
            return getter(tensor)
        return override_call(made.__get__, (tensor,), (tensor,), {})

    def set_(tensor: Any, value: Any) -> None:
        if (
            of_the_base
            or override_call(made.__set__, (tensor, value), (tensor, value), {}) is PROCEED
        ):
            setter(tensor, value)

    def delete(tensor: Any) -> None:
        if override_call(made.__delete__, (tensor,), (tensor,), {}) is PROCEED:
            deleter(tensor)

    get.__name__ = name
    made = property(
        get,
        None if setter is None else set_,
        None if deleter is None else delete,
        text or getattr(getter, "__doc__", None),
    )
    return made


def _overridable_entry(name: str) -> property:
    """The entry of a field in the tensor's dict, where TensorBase is interpreted."""

    def get(tensor: Any) -> Any:
        try:
            return vars(tensor)[name]
        except KeyError:
            raise AttributeError(f"attribute {name!r} of 'TensorBase' undefined") from None

    def set_(tensor: Any, value: Any) -> None:
        vars(tensor)[name] = value

    return _overridable_property(name, get, set_, None, True, _TEXTS[name])


def _is_asked_by_core() -> bool:
    """Whether the interpreted core reads a field; the compiled core would not call overrides."""
    caller = str(sys._getframe(2).f_globals.get("__name__", ""))
    return caller.startswith("plugrad.") and not caller.startswith("plugrad.overrides")
