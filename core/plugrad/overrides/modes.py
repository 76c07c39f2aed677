"""Modes that intercept every call of a public function, and blocks without overrides.

Both belong to the thread, and a backward pass takes them to the threads that run it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, ClassVar

from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.dispatch.scope import Scope
from plugrad.tensor.calls.overridable import ALIAS, ALL_OFF, METHOD, OVERRIDES, SUBCLASSES_OFF


class Mode(Scope):
    """The common part of modes for functions and modes for operators.

    Attributes:
        names: the names of the method that a mode defines: plugrad's and PyTorch's.
    """

    names: ClassVar[tuple[str, str]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        for name, other in (cls.names, cls.names[::-1]) if "names" not in own else ():
            if other in own and name not in own:
                setattr(cls, name, own[other])

    def held(self) -> Callable[[], Any]:
        """What the state keeps of the mode while it is on: a function that gives the mode.

        A mode that the state kept alive would not go with its block, if `with` loses that. A mode
        that was entered by a direct call and is not stored stays active.
        """
        return weakref.ref(self) if self._entries else lambda: self

    def value(self) -> Any:
        return self


class PlugradFunctionMode(Mode):
    """A context manager inside which each call of a public function goes to it first.

    Subclass it and define `__plugrad_function__(self, func, types, args=(), kwargs=None)`. Inside
    it the mode is off, so that `func(*args, **kwargs)` goes to the mode around this one, then to
    the classes of the arguments, then to plugrad. NotImplemented has the same effect without a
    call.

    >>> import plugrad
    >>> from plugrad.overrides import PlugradFunctionMode, resolve_name
    >>> class Log(PlugradFunctionMode):
    ...     def __plugrad_function__(self, func, types, args=(), kwargs=None):
    ...         print(resolve_name(func))
    ...         return func(*args, **(kwargs or {}))
    >>> with Log():
    ...     y = plugrad.ones(2) * 3
    plugrad.ones
    plugrad.Tensor.mul
    """

    names = (METHOD, ALIAS)

    def __plugrad_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError

    __torch_function__ = __plugrad_function__

    def read(self, state: LocalState) -> Any:
        return state.function_modes

    def change(self, state: LocalState) -> None:
        OVERRIDES.activate()
        state.function_modes = (*(state.function_modes or ()), self.held())

    def restore(self, state: LocalState, before: Any) -> None:
        state.function_modes = before


class BasePlugradFunctionMode(PlugradFunctionMode):
    """A mode that lets every call through.

    >>> import plugrad
    >>> from plugrad.overrides import BasePlugradFunctionMode
    >>> with BasePlugradFunctionMode():
    ...     plugrad.ones(2) + 1
    tensor([2., 2.])
    """

    def __plugrad_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def current_modes() -> list[Any]:
    """The modes that are on, outermost first."""
    modes = [held() for held in current_state().function_modes or ()]
    return [mode for mode in modes if mode is not None]


def current_mode() -> Any:
    """The innermost mode, or None."""
    modes = current_modes()
    return modes[-1] if modes else None


class innermost_off(Scope):
    """Context manager: the innermost mode is off for the time of its own work; gives the mode."""

    def read(self, state: LocalState) -> Any:
        return state.function_modes

    def change(self, state: LocalState) -> None:
        modes = state.function_modes or ()
        mode = None
        while modes and mode is None:
            mode, modes = modes[-1](), modes[:-1]
        self.mode = mode
        state.function_modes = modes or None

    def restore(self, state: LocalState, before: Any) -> None:
        state.function_modes = before

    def value(self) -> Any:
        return self.mode


class _Off(Scope):
    """Context manager: override less on this thread."""

    level = SUBCLASSES_OFF

    def read(self, state: LocalState) -> Any:
        return state.overrides_off

    def change(self, state: LocalState) -> None:
        state.overrides_off = max(self.level, state.overrides_off)

    def restore(self, state: LocalState, before: Any) -> None:
        state.overrides_off = before


class DisablePlugradFunctionSubclass(_Off):
    """Context manager that disables overrides of classes; modes still do.

    An override uses it to have plugrad work on its class as on any Tensor.

    >>> import plugrad
    >>> class Mine(plugrad.Tensor):
    ...     pass
    >>> with plugrad.overrides.DisablePlugradFunctionSubclass():
    ...     type(Mine([1.]) + 1).__name__
    'Tensor'
    """


class DisablePlugradFunction(_Off):
    """Context manager inside which neither classes nor modes override anything.

    >>> import plugrad
    >>> from plugrad.overrides import DisablePlugradFunction
    >>> class Logged(plugrad.Tensor):
    ...     @classmethod
    ...     def __plugrad_function__(cls, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return super().__plugrad_function__(func, types, args, kwargs)
    >>> x = plugrad.ones(2).as_subclass(Logged)
    >>> y = plugrad.exp(x)
    exp
    >>> with DisablePlugradFunction():
    ...     y = plugrad.exp(x)
    """

    level = ALL_OFF


def is_plugrad_function_enabled() -> bool:
    """Whether classes override functions on this thread now.

    >>> from plugrad.overrides import DisablePlugradFunction, is_plugrad_function_enabled
    >>> with DisablePlugradFunction():
    ...     is_plugrad_function_enabled()
    False
    """
    return current_state().overrides_off == 0
