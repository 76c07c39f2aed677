"""Passes a call to the modes and classes that override it."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from plugrad.dispatch.local_state import current_state
from plugrad.overrides.attributes import make_tensor_overridable as make_tensor_overridable
from plugrad.overrides.catalogue import DECORATED, get_default_nowrap_functions, resolve_name
from plugrad.overrides.modes import DisablePlugradFunctionSubclass, current_mode, innermost_off
from plugrad.tensor.base import TensorBase, tensor_class
from plugrad.tensor.calls.annotations import FAILURES, explain, refuse_classes
from plugrad.tensor.calls.arguments import MISSING, raise_argument_error
from plugrad.tensor.calls.overridable import (
    ALIAS,
    METHOD,
    PROCEED,
    has_plugrad_function,
    is_foreign,
    override_wrapped,
)

P = ParamSpec("P")
R = TypeVar("R")

# As in the signatures of functions: NumPy's name -> the name that values go by.
NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}


def get_overloaded_args(relevant: Iterable[Any], with_tensors: bool = True) -> list[Any]:
    """One argument of each overriding class, in the order in which they are tried.

    From left to right, but a subclass before its bases. `with_tensors` includes plain tensors,
    which have the default override.
    """
    found: list[Any] = []
    for value in _flat(relevant):
        kind = type(value)
        if not (is_foreign(value) or (with_tensors and kind is tensor_class())):
            continue
        if any(type(other) is kind for other in found):
            continue
        position = len(found)
        for index, other in enumerate(found):
            if issubclass(kind, type(other)):
                position = index
                break
        found.insert(position, value)
    return found


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from value
        else:
            yield value


def dispatch(
    func: Any,
    relevant: Iterable[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    with_tensors: bool = False,
) -> Any:
    """Try the innermost mode, then the classes of `relevant`, until one implements `func`.

    Raises:
        TypeError: all return NotImplemented.
    """
    overriding = (
        get_overloaded_args(relevant, with_tensors) if current_state().overrides_off == 0 else []
    )
    types = tuple(type(value) for value in overriding)
    if current_mode() is not None:
        with innermost_off() as mode:
            result = mode.__plugrad_function__(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for value in overriding:
        result = _implementation_of(value)(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = resolve_name(func) or f"{func.__module__}.{func.__name__}"
    message = (
        f"no implementation found for '{name}' on types that implement {METHOD}: {list(types)}"
    )
    mode = current_mode()
    if mode is not None:
        with innermost_off():
            message += f" nor in mode {mode}"
    raise TypeError(message)


def _implementation_of(value: Any) -> Any:
    kind = type(value)
    name = METHOD if hasattr(kind, METHOD) else ALIAS
    found = getattr(value, name)
    if getattr(found, "__self__", None) is value:
        warnings.warn(
            f"Defining your `{name}` as a plain method is deprecated and will be an error in "
            "future, please define it as a classmethod.",
            UserWarning,
            stacklevel=4,
        )
    return found


def default_implementation(
    cls: Any, func: Any, types: Any, args: tuple[Any, ...], kwargs: Any
) -> Any:
    """`Tensor.__plugrad_function__`: do what plugrad does, and give the results the class `cls`."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisablePlugradFunctionSubclass():
        result = func(*args, **(kwargs or {}))
        if func in get_default_nowrap_functions():
            return result
        return _convert(result, cls)


def _convert(result: Any, cls: Any) -> Any:
    if cls is tensor_class():
        return result
    if isinstance(result, TensorBase):
        public: Any = result
        return result if isinstance(result, cls) else public.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        items = [_convert(item, cls) for item in result]
        make = getattr(type(result), "_make", type(result))
        return make(items)
    return result


def handle_plugrad_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], /, *args: Any, **kwargs: Any
) -> Any:
    """Pass a call to its overrides: for handwritten functions that should be overridable.

    Args:
        public_api: the function that was called.
        relevant_args: the arguments that may have overriding classes.
        args, kwargs: all of its arguments.

    Raises:
        TypeError: no class implements it.

    >>> import plugrad
    >>> from plugrad.overrides import handle_plugrad_function, has_plugrad_function_unary
    >>> def twice(tensor):
    ...     if has_plugrad_function_unary(tensor):
    ...         return handle_plugrad_function(twice, (tensor,), tensor)
    ...     return tensor + tensor
    >>> twice(plugrad.ones(2))
    tensor([2., 2.])
    """
    return dispatch(public_api, tuple(relevant_args), args, kwargs, True)


def wrap_plugrad_function(
    dispatcher: Callable[..., Iterable[Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that makes a function overridable.

    `dispatcher` takes the function's arguments and returns the ones that may have overriding
    classes.

    >>> from plugrad.overrides import wrap_plugrad_function
    >>> @wrap_plugrad_function(lambda a: (a,))
    ... def twice(a):
    ...     return a + a
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_plugrad_function(relevant):
                return handle_plugrad_function(checked, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return checked

    return decorate


def overridable(module: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator that makes a function overridable by the class of any argument.

    Where the function fails, an argument of another type than its annotation is named.

    Args:
        module: where users find the function, which is part of its public name.

    >>> import plugrad
    >>> from plugrad.overrides import overridable
    >>> @overridable("mine")
    ... def twice(a):
    ...     return a + a
    >>> class Text:
    ...     @classmethod
    ...     def __plugrad_function__(cls, func, types, args=(), kwargs=None):
    ...         return plugrad.overrides.resolve_name(func)
    >>> twice(plugrad.ones(1)), twice(Text())
    (tensor([2.]), 'mine.twice')
    """

    if not isinstance(module, str):
        raise_argument_error("overridable", "module", 1, "str", module)

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            handled = override_wrapped(checked, args, kwargs)
            if handled is not PROCEED:
                result: R = handled
                return result
            refuse_classes(function, args, kwargs)
            try:
                return function(*args, **kwargs)
            except FAILURES as error:
                explain(function, args, kwargs, error)
                raise

        DECORATED[checked] = f"{module}.{function.__name__}"
        return checked

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether a value is a Tensor or of a class that overrides functions.

    >>> import plugrad
    >>> plugrad.overrides.is_tensor_like(plugrad.ones(1)), plugrad.overrides.is_tensor_like([1])
    (True, False)
    """
    return type(inp) is tensor_class() or hasattr(inp, METHOD) or hasattr(inp, ALIAS)


def call_with_values(func: Any, values: tuple[Any, ...]) -> Any:
    """Hand a generated function's call over; `values` has all arguments, defaults filled in."""
    args, kwargs = _as_given(_parameters(func), values)
    return dispatch(func, values, args, kwargs)


def call_method_with_values(name: str, values: tuple[Any, ...]) -> Any:
    """The same for a method; the first of `values` is the tensor."""
    func = getattr(tensor_class(), name)
    if len(values) == 1:
        return dispatch(func, values, values, {})
    args, kwargs = _as_given(_method_parameters(name), values)
    return dispatch(func, values, args, kwargs)


def call_operator(name: str, tensor: Any, other: Any) -> Any:
    """The same for an infix operator: NotImplemented, not a TypeError, lets Python go on."""
    values = (tensor, other)
    try:
        return dispatch(getattr(tensor_class(), name), values, values, {})
    except TypeError:
        return NotImplemented


Parameters = tuple[inspect.Parameter, ...]


@functools.cache
def _parameters(func: Any) -> Parameters:
    from plugrad._generated import signatures

    known = getattr(signatures, func.__name__, None)
    # A third party's functions are interpreted, so they have signatures of their own.
    public = func.__module__.startswith("plugrad._generated")
    found = inspect.signature(known if public and known is not None else func).parameters
    return tuple(
        parameter for name, parameter in found.items() if NUMPY_NAMES.get(name) not in found
    )


@functools.cache
def _method_parameters(name: str) -> Parameters:
    from plugrad._generated import signatures

    receiver = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    found = inspect.signature(getattr(signatures, name)).parameters
    others = (
        parameter
        for name, parameter in found.items()
        if name not in ("input", "out") and NUMPY_NAMES.get(name) not in found
    )
    return (receiver, *others)


def _as_given(
    parameters: Parameters, values: tuple[Any, ...]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments as a caller would pass them: without defaults.

    How they were passed is unknown here; those before the first default go by position.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    gathered = skipped = False
    for parameter, value in zip(parameters, values, strict=True):
        default = parameter.default
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            args.extend(value)
            gathered = bool(value)
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY and gathered:
            gathered = False  # the same integers by their name
        elif value is MISSING or (default is not MISSING and _is_default(value, default)):
            skipped = True
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY or skipped:
            kwargs[parameter.name] = value
        else:
            args.append(value)
    return tuple(args), kwargs


def _is_default(value: Any, default: Any) -> bool:
    if value is default:
        return True
    return type(value) is type(default) and not isinstance(value, TensorBase) and value == default
