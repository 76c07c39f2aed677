"""The native half of the override protocol: decides whether a call goes to `__plugrad_function__`.

`OVERRIDES.active` is false until a Tensor subclass with an override is defined, a mode is entered,
or an argument that is not a Tensor turns out to have one; until then the protocol costs a public
function one comparison of that field. Once it is true, `override` looks at the arguments, and
`plugrad.overrides`, which is interpreted and imported only then, calls the overrides that it finds.
"""

from __future__ import annotations

import importlib
import threading
from typing import TYPE_CHECKING, Any, Final, cast, final

from plugrad.device import Device
from plugrad.dispatch.fork import hold_while_forking
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dtype import DType
from plugrad.tensor.base import TensorBase, empty_shell, tensor_class

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

# The overrides that a thread can switch off (`LocalState.overrides_off`). From ALL_OFF on nothing
# is overridden. IN_CORE is added while one of plugrad's own nodes runs, because its formulas are
# not the user's calls; the user's hooks run without it.
SUBCLASSES_OFF: Final = 1
ALL_OFF: Final = 2
IN_CORE: Final = 4

METHOD: Final = "__plugrad_function__"
ALIAS: Final = "__torch_function__"


@final
class _Proceed:
    def __repr__(self) -> str:
        return "<no override>"


PROCEED: Final = _Proceed()


@final
class Overrides:
    """Whether anybody in this process overrides anything.

    Attributes:
        active: whether public functions check for overrides.
        functions: the public functions that have overloads, by namespace and name.
        machinery: the module `plugrad.overrides.handling`, once that is so.
    """

    def __init__(self) -> None:
        self.active: bool = False
        self.functions: dict[tuple[str, str], Any] = {}
        self.machinery: Any = None
        self._lock: Any = threading.RLock()

    def activate(self) -> None:
        """From now on, public functions check for overrides."""
        if self.active:
            return
        with self._lock:
            if not self.active:
                self.machinery = importlib.import_module("plugrad.overrides.handling")
                self.machinery.make_tensor_overridable()
                self.active = True


OVERRIDES: Final = Overrides()
hold_while_forking(OVERRIDES._lock)


def disabled_plugrad_function(
    func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
) -> Any:
    """As a class's `__plugrad_function__`, it means that the class has no overrides.

    >>> import plugrad
    >>> from plugrad.overrides import disabled_plugrad_function
    >>> class Plain(plugrad.Tensor):
    ...     __plugrad_function__ = disabled_plugrad_function
    >>> x = plugrad.ones(2).as_subclass(Plain)
    >>> type(x).__name__, type(x + 1).__name__
    ('Plain', 'Tensor')
    """
    return func(*args, **(kwargs or {}))


def implementation(cls: Any) -> Any:
    """What a class has as `__plugrad_function__` or `__torch_function__`; None for nothing."""
    found: Any = getattr(cls, METHOD, None)
    if found is None:
        found = getattr(cls, ALIAS, None)
    return None if found is disabled_plugrad_function else found


def is_foreign(value: Any) -> bool:
    """Whether a value's class overrides public functions; a Tensor's own default does not count."""
    if isinstance(value, TensorBase):
        return type(value) is not tensor_class() and implementation(type(value)) is not None
    kind: Any = type(value)
    if value is None or kind is int or kind is float or kind is tuple or kind is list:
        return False  # nearly all others; a look at many classes takes longer
    if isinstance(value, (int, float, str, complex, list, tuple, dict, slice, DType, Device, type)):
        return False
    return implementation(kind) is not None


def has_foreign(values: tuple[Any, ...]) -> bool:
    """`is_foreign` of any of the values, or of an item of one that is a list or tuple."""
    for value in values:
        if is_foreign(value):
            return True
        if isinstance(value, (list, tuple)):
            for item in value:
                if is_foreign(item):
                    return True
    return False


def _to_be_dispatched(state: LocalState, values: tuple[Any, ...]) -> bool:
    if state.overrides_off >= ALL_OFF:
        return False
    if state.function_modes is not None:
        return True
    return state.overrides_off == 0 and has_foreign(values)


def override(func: Any, values: tuple[Any, ...]) -> Any:
    """What an override makes of a call of a generated function, or PROCEED.

    `values` are the arguments in the order of the parameters, with the defaults of those not given.
    """
    if not _to_be_dispatched(current_state(), values):
        return PROCEED
    return OVERRIDES.machinery.call_with_values(func, values)


def override_method(name: str, values: tuple[Any, ...]) -> Any:
    """`override` for the method of a Tensor; the first of `values` is the tensor."""
    if not _to_be_dispatched(current_state(), values):
        return PROCEED
    return OVERRIDES.machinery.call_method_with_values(name, values)


def override_operator(name: str, tensor: Any, other: Any) -> Any:
    """`override` for an infix operator, for which a TypeError means that it is not implemented."""
    if not _to_be_dispatched(current_state(), (tensor, other)):
        return PROCEED
    return OVERRIDES.machinery.call_operator(name, tensor, other)


def override_overloaded(
    namespace: str, name: str, method: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """`override` for a function with overloads, which gets its arguments as they were given."""
    if not _to_be_dispatched(current_state(), (*args, *kwargs.values())):
        return PROCEED
    if method:
        func = getattr(tensor_class(), name)
    else:
        func = OVERRIDES.functions.get((namespace, name))
        if func is None:
            return PROCEED
    return OVERRIDES.machinery.dispatch(func, (*args, *kwargs.values()), args, kwargs)


def override_call(
    func: Any, relevant: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """`override` for a handwritten function; `relevant` are the arguments that may override."""
    if not _to_be_dispatched(current_state(), relevant):
        return PROCEED
    return OVERRIDES.machinery.dispatch(func, relevant, args, kwargs, True)


def accept_foreign(value: Any) -> bool:
    """Whether an argument that is not a Tensor overrides functions; if so, all functions check for
    overrides from now on.

    Converters call this before they refuse a value, so the first tensor-like of a process is found
    at no cost to calls without one.
    """
    if implementation(type(value)) is None or isinstance(value, type):
        return False
    if current_state().overrides_off != 0:
        return False
    OVERRIDES.activate()
    return True


def stand_in() -> Tensor:
    """A tensor without contents, for an argument of a class that will handle the call."""
    return cast("Tensor", empty_shell(tensor_class()))


def has_plugrad_function_unary(value: Any) -> bool:
    """Whether to pass a call with this argument to `handle_plugrad_function`.

    >>> import plugrad
    >>> from plugrad.overrides import has_plugrad_function_unary
    >>> class Metres(plugrad.Tensor):
    ...     pass
    >>> x = plugrad.ones(2)
    >>> has_plugrad_function_unary(x), has_plugrad_function_unary(x.as_subclass(Metres))
    (False, True)
    """
    if not OVERRIDES.active and (isinstance(value, TensorBase) or not accept_foreign(value)):
        return False
    return _to_be_dispatched(current_state(), (value,))


def has_plugrad_function_variadic(*values: Any) -> bool:
    """`has_plugrad_function` of arguments that are given one by one.

    >>> import plugrad
    >>> from plugrad.overrides import has_plugrad_function_variadic
    >>> class Metres(plugrad.Tensor):
    ...     pass
    >>> x = plugrad.ones(2)
    >>> has_plugrad_function_variadic(x, 2.0)
    False
    >>> has_plugrad_function_variadic(x, x.as_subclass(Metres))
    True
    """
    return has_plugrad_function(values)


def has_plugrad_function(relevant_args: Any) -> bool:
    """Whether to pass a call with these arguments to `handle_plugrad_function`.

    True inside a mode, and if the class of an argument (or of an item of one that is a list or
    tuple) has `__plugrad_function__`.

    Raises:
        TypeError: not a sequence.

    >>> import plugrad
    >>> from plugrad.overrides import has_plugrad_function
    >>> class Metres(plugrad.Tensor):
    ...     pass
    >>> x = plugrad.ones(2)
    >>> has_plugrad_function((x, x)), has_plugrad_function((x, x.as_subclass(Metres)))
    (False, True)
    """
    if not isinstance(relevant_args, (list, tuple)):
        raise TypeError("expected a sequence")
    values = tuple(relevant_args)
    if not OVERRIDES.active:
        if not has_foreign(values):
            return False
        OVERRIDES.activate()
    return _to_be_dispatched(current_state(), values)


def declare_subclass(cls: Any) -> None:
    """Note that a subclass of Tensor was defined.

    A class may define its override under either name: the override of the class, or of its first
    base with one, is stored under both.
    """
    for base in cls.__mro__:
        names = vars(base)
        if METHOD in names or ALIAS in names:
            if not (METHOD in names and ALIAS in names):
                found = names[METHOD] if METHOD in names else names[ALIAS]
                setattr(cls, METHOD, found)
                setattr(cls, ALIAS, found)
            break
    if implementation(cls) is not None:
        OVERRIDES.activate()


def call_users(function: Any, args: tuple[Any, ...]) -> Any:
    """Call what a user gave to the core: in there, overrides are as the user left them."""
    state = current_state()
    before = state.overrides_off
    if before < IN_CORE:
        return function(*args)
    state.overrides_off = before - IN_CORE
    try:
        return function(*args)
    finally:
        state.overrides_off = before


def override_wrapped(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`override_call` for a function that is decorated with `overridable`."""
    if (
        not OVERRIDES.active
        and not find_tensor_like(args)
        and (not kwargs or not find_tensor_like(tuple(kwargs.values())))
    ):
        return PROCEED
    return override_call(func, (*args, *kwargs.values()), args, kwargs)


def gives_class(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a class of tensors is among the arguments, where one of its instances was meant."""
    for value in args:
        if isinstance(value, type) and issubclass(value, TensorBase):
            return True
    if kwargs:
        for value in kwargs.values():
            if isinstance(value, type) and issubclass(value, TensorBase):
                return True
    return False


def find_tensor_like(values: tuple[Any, ...]) -> bool:
    """Activate the protocol if one of the values is not a Tensor and overrides; says whether."""
    for value in values:
        if not isinstance(value, TensorBase) and is_foreign(value):
            OVERRIDES.activate()
            return True
    return False
