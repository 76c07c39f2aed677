"""Which functions can be overridden, and what they are called."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from plugrad import autograd
from plugrad._generated import functions, on_demand
from plugrad._tensor.on_demand import load_methods
from plugrad.ops.composite.arrangement.broadcasting import broadcast_tensors
from plugrad.ops.composite.einsum import einsum, tensordot
from plugrad.tensor.base import tensor_class
from plugrad.tensor.calls import promotion
from plugrad.tensor.calls.overridable import OVERRIDES
from plugrad.tensor.creation import from_data as creation

# Handwritten and overridable.
BY_HAND: tuple[Any, ...] = (broadcast_tensors, einsum, tensordot, promotion.result_type)
OF_AUTOGRAD: tuple[Any, ...] = (autograd.backward, autograd.grad)
# They take no tensors; modes see them.
SEEN_BY_MODES: tuple[Any, ...] = (
    creation.tensor,
    creation.as_tensor,
    creation.asarray,
    creation.scalar_tensor,
)
# Those that the decorator `overridable` made so, and their public names.
DECORATED: dict[Any, str] = {}
# These do not support overrides.
IGNORED = (
    *(
        "from_numpy",
        "from_dlpack",
        "is_tensor",
        "can_cast",
        "get_default_device",
        "set_default_device",
    ),
    *("get_default_dtype", "set_default_dtype", "manual_seed", "seed", "initial_seed"),
    *("get_rng_state", "set_rng_state", "set_printoptions"),
    *("no_grad", "enable_grad", "set_grad_enabled", "is_grad_enabled"),
)


def _function_names() -> list[str]:
    return [*functions.__all__, *on_demand.FUNCTIONS]


def _of_tensors(func: Any) -> bool:
    """Whether a public function takes tensors; factories do not."""
    from plugrad._generated import signatures

    known = getattr(signatures, func.__name__, None)
    if known is None:
        return True
    names = inspect.signature(known).parameters
    return bool({"input", "other", "tensors", "self", "condition"} & set(names)) or not (
        {"device", "dtype"} <= set(names)
    )


def _tensor_attributes() -> dict[str, Any]:
    """Name -> attribute of Tensor, for those that are methods or properties."""
    OVERRIDES.activate()
    load_methods()
    cls = tensor_class()
    found: dict[str, Any] = {}
    for name in dir(cls):
        if name in ("__class__", "__dict__", "__doc__", "__weakref__", "__module__"):
            continue
        value = inspect.getattr_static(cls, name)
        if callable(value) or hasattr(value, "__get__"):
            found[name] = value
    return found


@functools.cache
def _names() -> dict[Any, str]:
    """Function -> its public name."""
    found: dict[Any, str] = {}
    for func in (*BY_HAND, *SEEN_BY_MODES):
        found[func] = f"plugrad.{func.__name__}"
    for func in OF_AUTOGRAD:
        found[func] = f"plugrad.autograd.{func.__name__}"
    for name in _function_names():
        found[getattr(functions, name)] = f"plugrad.{name}"
    for name, value in _tensor_attributes().items():
        public = f"plugrad.Tensor.{name}"
        if isinstance(value, property):
            found[_getter(value)] = f"{public}.__get__"
            found[_setter(value)] = f"{public}.__set__"
            found[value.__delete__] = f"{public}.__delete__"
        elif not isinstance(value, (staticmethod, classmethod)):
            found[value] = public
    return found


def _getter(attribute: Any) -> Any:
    return attribute.__get__


def _setter(attribute: Any) -> Any:
    return attribute.__set__


def resolve_name(f: Any) -> str | None:
    """The public name of an overridable function; None if it has none.

    >>> import plugrad
    >>> plugrad.overrides.resolve_name(plugrad.Tensor.add)
    'plugrad.Tensor.add'
    """
    try:
        return _names().get(f) or DECORATED.get(f)
    except TypeError:  # not hashable
        return None


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """Namespace -> the functions in it that `__plugrad_function__` may take over.

    Namespaces are modules, Tensor, its properties, and the names of modules of plugins.

    >>> import plugrad
    >>> from plugrad.overrides import get_overridable_functions
    >>> plugrad.add in get_overridable_functions()[plugrad]
    True
    """
    package = sys.modules["plugrad"]
    cls = tensor_class()
    found: dict[Any, list[Any]] = {
        package: [
            func
            for name in _function_names()
            if not name.startswith("_") and _of_tensors(func := getattr(functions, name))
        ],
        cls: [],
        autograd: list(OF_AUTOGRAD),
    }
    found[package].extend(BY_HAND)
    for func, public in DECORATED.items():
        found.setdefault(public.rpartition(".")[0], []).append(func)
    ignored = get_ignored_functions()
    for name, value in _tensor_attributes().items():
        if isinstance(value, property):
            found[value] = [_getter(value)]
        elif isinstance(value, (staticmethod, classmethod)) or value in ignored:
            continue
        elif not hasattr(object, name) or name in vars(cls):
            found[cls].append(value)
    return found


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions that `__plugrad_function__` never sees; modes see some of them.

    >>> import plugrad
    >>> from plugrad.overrides import get_ignored_functions
    >>> plugrad.is_tensor in get_ignored_functions()
    True
    """
    from plugrad.overrides.attributes import NOT_OVERRIDABLE

    cls = tensor_class()
    factories = {
        func for name in _function_names() if not _of_tensors(func := getattr(functions, name))
    }
    attributes = {getattr(cls, name) for name in NOT_OVERRIDABLE}
    attributes |= {getattr(object, name) for name in dir(object) if name != "__doc__"}
    package = sys.modules["plugrad"]
    ignored = {getattr(package, name) for name in IGNORED}
    return factories | attributes | ignored | set(SEEN_BY_MODES)


@functools.cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Overridable function -> a function that takes the same arguments and returns -1.

    >>> import plugrad
    >>> from plugrad.overrides import get_testing_overrides
    >>> plugrad.add in get_testing_overrides()
    True
    """
    from plugrad._generated import signatures

    found: dict[Any, Any] = {}
    for funcs in get_overridable_functions().values():
        for func in funcs:
            known = getattr(signatures, getattr(func, "__name__", ""), None)
            found[func] = _stand_in(_signature(func) or _signature(known))
    return found


def _signature(func: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(func)
    except (TypeError, ValueError):  # of a compiled function, or none
        return None


def _stand_in(signature: inspect.Signature | None) -> Callable[..., int]:
    def returns_minus_one(*args: Any, **kwargs: Any) -> int:
        return -1

    if signature is not None:
        returns_minus_one.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it
    return returns_minus_one


@functools.cache
def _nowrap() -> frozenset[Any]:
    attributes = _tensor_attributes()
    return frozenset({_getter(attributes["_base"]), _getter(attributes["grad"])})


def get_default_nowrap_functions() -> frozenset[Callable[..., Any]]:
    """Functions with results that Tensor's default override does not convert.

    >>> import plugrad
    >>> from plugrad.overrides import get_default_nowrap_functions
    >>> plugrad.Tensor.grad.__get__ in get_default_nowrap_functions()
    True
    """
    return _nowrap()


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is a method of Tensor, or the reader of a property.

    >>> import plugrad
    >>> from plugrad.overrides import is_tensor_method_or_property
    >>> is_tensor_method_or_property(plugrad.Tensor.add), is_tensor_method_or_property(plugrad.add)
    (True, False)
    """
    name = resolve_name(func)
    return name is not None and name.startswith("plugrad.Tensor.")
