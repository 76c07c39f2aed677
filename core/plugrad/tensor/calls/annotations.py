"""Says which argument of a function written in Python is wrong, once the function has failed.

Such a function does not check its arguments: a wrong one raises somewhere inside. Only then are its
annotations compared with the arguments. The public interface is `plugrad.plugins.arguments`.
"""

from __future__ import annotations

# Interpreted: it runs when something goes wrong.
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import UnionType
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from plugrad.device import Device
from plugrad.dtype import DType
from plugrad.tensor.base import TensorBase, numel_of
from plugrad.tensor.calls.arguments import is_index, place_of, type_name
from plugrad.tensor.calls.overridable import gives_class
from plugrad.tensor.calls.promotion import is_scalar

P = ParamSpec("P")
R = TypeVar("R")

# What happens inside a function to an argument of another type.
FAILURES = (
    AttributeError, TypeError, ValueError, KeyError, IndexError, ArithmeticError, RecursionError,
    AssertionError,
)  # fmt: skip


def _is_real(value: Any) -> bool:
    if isinstance(value, TensorBase):
        return numel_of(value) == 1 and not value.dtype.is_complex
    return is_scalar(value) and not isinstance(value, complex)


def _are_tensors(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(item, TensorBase) for item in value)
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, dict, np.ndarray))


def _are_ints(value: Any) -> bool:
    if not isinstance(value, (list, tuple)):
        return False
    # As in PyTorch, only the first may not be a bool.
    return all(is_index(item) or (i > 0 and isinstance(item, bool)) for i, item in enumerate(value))


def _are_reals(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(map(_is_real, value))


def _are_two_reals(value: Any) -> bool:
    return _are_reals(value) and len(value) == 2


# Annotation -> how messages name it, and whether a value is one.
_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "None": ("", lambda value: value is None),
    "Tensor": ("Tensor", lambda value: isinstance(value, TensorBase)),
    "TensorBase": ("Tensor", lambda value: isinstance(value, TensorBase)),
    "int": ("int", lambda value: isinstance(value, bool) or is_index(value)),
    "float": ("float", _is_real),
    "bool": ("bool", lambda value: type(value).__name__ in ("bool", "bool_")),
    "str": ("str", lambda value: isinstance(value, str)),
    "DType": ("plugrad.dtype", lambda value: isinstance(value, DType)),
    "Device": ("plugrad.device", lambda value: isinstance(value, Device)),
    "Sequence[int]": ("tuple of ints", _are_ints),
    "tuple[int, ...]": ("tuple of ints", _are_ints),
    "Iterable[Tensor]": ("tuple of Tensors", _are_tensors),
    "Sequence[Tensor]": ("tuple of Tensors", _are_tensors),
    "Iterable[TensorBase]": ("tuple of Tensors", _are_tensors),
    "Sequence[TensorBase]": ("tuple of Tensors", _are_tensors),
    "tuple[float, float]": ("tuple of two floats", _are_two_reals),
    "Sequence[int | float]": ("tuple of numbers", _are_reals),
    "dtype": ("plugrad.dtype", lambda value: isinstance(value, DType)),
    "Sized": ("sized", lambda value: hasattr(type(value), "__len__")),
    "Generator": ("plugrad.Generator", lambda value: hasattr(value, "manual_seed")),
}
# The same for the beginning of an annotation, before a bracket.
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "Iterable": ("iterable", lambda value: isinstance(value, Iterable)),
    "Callable": ("callable", callable),
    "dict": ("dict", lambda value: isinstance(value, dict)),
    "Mapping": ("dict", lambda value: isinstance(value, Mapping)),
    "Sequence": ("sequence", lambda value: hasattr(type(value), "__getitem__")),
    "list": ("list", lambda value: isinstance(value, list)),
    "tuple": ("tuple", lambda value: isinstance(value, tuple)),
    "set": ("set", lambda value: isinstance(value, set)),
}


@overload
def explains(function: Callable[P, R], *, name: str = "") -> Callable[P, R]: ...
@overload
def explains(
    function: None = None, *, name: str = ""
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def explains(function: Any = None, *, name: str = "") -> Any:
    """Decorator: an argument of another type than its annotation is named, in PyTorch's words.

    A call that succeeds is not checked.

    Args:
        name: of the function in messages; by default its own.

    >>> import plugrad
    >>> from plugrad.plugins.arguments import explains
    >>> @explains
    ... def rows(input: "Tensor", count: "int") -> int:
    ...     return input.shape[0] * count
    >>> rows(plugrad.ones(2, 3), 2)
    4
    >>> rows([1.0], 2)
    Traceback (most recent call last):
    TypeError: rows(): argument 'input' (position 1) must be Tensor, not list
    """
    if function is None:
        return functools.partial(explains, name=name)

    @functools.wraps(function)
    def explained(*args: Any, **kwargs: Any) -> Any:
        refuse_classes(function, args, kwargs, name)
        try:
            return function(*args, **kwargs)
        except FAILURES as error:
            explain(function, args, kwargs, error, name)
            raise

    return explained


def refuse_classes(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str = ""
) -> None:
    """Refuse the class of tensors in place of a tensor, before the function runs.

    If a line has called a tensor's native method, `x.conj()`, many times and then gets the class,
    CPython 3.11 reads beyond its stack and takes what it finds for the tensor.
    """
    if gives_class(args, kwargs):
        wrong = mismatch(function, args, kwargs, name or function.__name__, _is_class_of_tensors)
        if wrong is not None:
            raise wrong


def _is_class_of_tensors(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, TensorBase)


def explain(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception, name: str = ""
) -> None:
    """Raise TypeError if an argument explains why a call has failed with `error`."""
    words = str(error)
    if "argument '" in words or "__" in words.partition("(")[0]:
        return  # The message is already specific.
    if words.startswith(f"{name or function.__name__}(") and "combination of" not in words:
        return
    wrong = mismatch(function, args, kwargs, name or function.__name__)
    if wrong is not None:
        raise wrong from None


def mismatch(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    name: str,
    where: Callable[[object], bool] = lambda value: True,
) -> TypeError | None:
    """The error for the first argument that does not match its annotation; None if all do.

    Args:
        where: which values are looked at; by default all.
    """
    signature = inspect.signature(function)
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None
    position = 0
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        position += 1
        if parameter.name not in given or parameter.kind is parameter.VAR_KEYWORD:
            continue
        several = parameter.kind is parameter.VAR_POSITIONAL
        values = given[parameter.name] if several else (given[parameter.name],)
        for place, value in enumerate(values, position):
            if not where(value):
                continue
            words = _unmet(_spelt_out(function, parameter.annotation), value, _names_of(function))
            if words:
                shown = 0 if parameter.name in kwargs else place
                found = place_of(name, parameter.name, shown)
                return TypeError(f"{found} must be {words}, not {type_name(value)}")
    return None


def _names_of(function: Any) -> dict[str, Any]:
    """The names of the module that a function is written in."""
    found: dict[str, Any] = getattr(inspect.unwrap(function), "__globals__", {})
    return found


def _spelt_out(function: Any, annotation: Any) -> Any:
    """An annotation with the names that its module gives to unions replaced by those."""
    if not isinstance(annotation, str):
        return annotation
    names = _names_of(function)
    parts: list[str] = []
    for part in _alternatives(annotation):
        union = names.get(part)
        parts.append(str(union) if isinstance(union, UnionType) else part)
    return " | ".join(parts).replace("collections.abc.", "")


def _is_one(cls: type[Any]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, cls)


def _unmet(annotation: Any, value: Any, known: dict[str, Any]) -> str:
    """The requirement of an annotation that a value does not meet; "" for none or an unknown one.

    `known` has the classes that annotations name.
    """
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    names: list[str] = []
    for part in _alternatives(text.strip("\"'")):
        word = part.removeprefix("_builtins.").removeprefix("plugrad.")
        found = _TYPES.get(word) or _KINDS.get(word.partition("[")[0])
        named = known.get(word)
        if isinstance(named, TypeVar):
            named = named.__bound__
        if found is None and type(named) is type and not hasattr(named, "_is_protocol"):
            found = (named.__name__, _is_one(named))
        if found is None or found[1](value):
            return ""
        if found[0]:
            names.append(found[0])
    return " or ".join(names)


def _alternatives(text: str) -> list[str]:
    """The parts of an annotation between the bars that are in no brackets.

    >>> from plugrad.tensor.calls.annotations import _alternatives
    >>> _alternatives("Sequence[int | float] | None")
    ['Sequence[int | float]', 'None']
    """
    parts: list[str] = []
    for part in text.split(" | "):
        if parts and parts[-1].count("[") > parts[-1].count("]"):
            parts[-1] += " | " + part
        else:
            parts.append(part)
    return parts


# Methods that are called too often for a frame more. They begin with compiled code that checks.
_QUICK = frozenset({"size", "stride", "backward"})


def explain_receivers(cls: type[R]) -> type[R]:
    """Decorator of a class of tensors: if a public method is called through the class on an object
    that is not a tensor, the error names it."""
    for name, member in list(vars(cls).items()):
        if inspect.isfunction(member) and not name.startswith("_") and name not in _QUICK:
            setattr(cls, name, _explained_receiver(member))
    return cls


def guard_receivers(cls: type[Any]) -> None:
    """Make all methods of an interpreted class of tensors refuse other objects, as Python and mypyc
    do it for the compiled core."""
    for name, member in list(vars(cls).items()):
        if inspect.isfunction(member) and name not in ("__new__", "__init__"):
            setattr(cls, name, _guarded_receiver(member))


def _guarded_receiver(method: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(method)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        if args and not isinstance(args[0], TensorBase):
            raise wrong_receiver(method.__name__, args[0])
        return method(*args, **kwargs)

    return guarded


def _explained_receiver(method: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(method)
    def explained(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except AttributeError:
            if args and not isinstance(args[0], TensorBase):
                raise wrong_receiver(method.__name__, args[0]) from None
            raise

    return explained


def wrong_receiver(method: str, value: object) -> TypeError:
    """The error for a method of tensors that is called on something else."""
    return TypeError(
        f"descriptor '{method}' for 'plugrad.TensorBase' objects doesn't apply to a "
        f"'{type_name(value)}' object"
    )


def explain_constructors(classes: Iterable[Any]) -> None:
    """`explains` for the constructors of classes, in place."""
    for cls in list(classes):
        if not isinstance(cls, type):
            continue
        made: Any = cls
        owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
        # A private base does not explain its errors itself.
        if inspect.isfunction(made.__init__) and (owner is cls or owner.__name__.startswith("_")):
            made.__init__ = explains(made.__init__, name=cls.__name__)
