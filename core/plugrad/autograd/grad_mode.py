"""The grad modes of a thread: `no_grad`, `enable_grad`, `inference_mode` and the like."""

from __future__ import annotations

# Interpreted: users subclass its classes and decorate with them.
import functools
import inspect
from collections.abc import Callable
from typing import Any, Self, TypeVar, overload

from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.keys import AUTOGRAD_BIT, FORWARD_AD_BIT
from plugrad.dispatch.local_state import LocalState, current_state, set_inference_mode
from plugrad.dispatch.prepared_signature import PreparedSignature
from plugrad.dispatch.scope import GradScope, Scope, SetAtOnce, Within
from plugrad.tensor.calls.arguments import raise_argument_error

_F = TypeVar("_F", bound=Callable[..., Any])

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_multithreading_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def is_grad_enabled() -> bool:
    """Whether autograd records operations on this thread.

    >>> import plugrad
    >>> with plugrad.no_grad():
    ...     plugrad.is_grad_enabled()
    False
    """
    return current_state().grad_enabled


def is_inference_mode_enabled() -> bool:
    """Whether new tensors on this thread are inference tensors.

    >>> import plugrad
    >>> with plugrad.inference_mode():
    ...     plugrad.is_inference_mode_enabled()
    True
    >>> plugrad.is_inference_mode_enabled()
    False
    """
    return current_state().inference_mode


class _Decorates:
    """A scope that decorates functions and generator functions, too."""

    def __call__(self, function: _F) -> _F:
        """Decorate a function or a generator function."""
        if inspect.isclass(function):
            warn_at_caller(
                "Decorating classes is deprecated and will be disabled in future versions. You "
                "should only decorate functions or methods. To preserve the current behavior of "
                "class decoration, you can directly decorate the `__init__` method and nothing "
                "else.",
                FutureWarning,
            )
        decorated: _F = decorate(function, self)
        return decorated


class ModeManager(_Decorates, Scope):
    """Sets a mode of the thread within a `with` block, or within a function it decorates."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def clone(self) -> Any:
        """Another manager of the same mode."""
        return type(self)(self.mode)


class no_grad(_Decorates, GradScope):
    """Context manager and decorator: operations inside are not recorded.

    >>> import plugrad
    >>> x = plugrad.ones(1, requires_grad=True)
    >>> with plugrad.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    @overload
    def __new__(cls, orig_func: None = None) -> Self: ...
    @overload
    def __new__(cls, orig_func: _F) -> _F: ...  # type: ignore[misc]  # decorates at once
    def __new__(cls, orig_func: Any = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)

    def __init__(self, orig_func: Any = None) -> None:
        self.mode = False

    def clone(self) -> Any:
        """Another one of the same kind, which has not been entered.

        >>> import plugrad
        >>> mode = plugrad.no_grad()
        >>> type(mode.clone()).__name__, mode.clone() is mode
        ('no_grad', False)
        """
        return type(self)()


class enable_grad(_Decorates, GradScope):
    """Context manager and decorator: operations inside are recorded, even within `no_grad`.

    >>> import plugrad
    >>> x = plugrad.ones(2, requires_grad=True)
    >>> with plugrad.no_grad(), plugrad.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    @overload
    def __new__(cls, orig_func: None = None) -> Self: ...
    @overload
    def __new__(cls, orig_func: _F) -> _F: ...  # type: ignore[misc]  # decorates at once
    def __new__(cls, orig_func: Any = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)

    def __init__(self, orig_func: Any = None) -> None:
        self.mode = True

    def clone(self) -> Any:
        """Another one of the same kind, which has not been entered.

        >>> import plugrad
        >>> with plugrad.no_grad(), plugrad.enable_grad().clone():
        ...     plugrad.is_grad_enabled()
        True
        """
        return type(self)()


class _SetAtOnce(_Decorates, SetAtOnce):
    """Sets a mode when it is made; as a context manager or decorator it puts the old one back."""

    __signature__: Any = PreparedSignature()

    def prepare(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                f"{type(self).__name__}(): argument 'enabled' (position 1) must be bool, not "
                f"{type(mode).__name__}"
            )
        self.mode = mode

    def clone(self) -> Any:
        """Another manager of the same mode."""
        return type(self)(self.mode)

    def __call__(self, function: _F) -> _F:
        self.unset()
        return super().__call__(function)


class set_grad_enabled(_SetAtOnce):
    """Sets grad mode to `mode`, at once; as a context manager it restores the old mode.

    Raises:
        TypeError: `mode` is not a bool.

    >>> import plugrad
    >>> with plugrad.set_grad_enabled(False):
    ...     plugrad.is_grad_enabled()
    False
    """

    def read(self, state: LocalState) -> Any:
        return state.grad_enabled

    def change(self, state: LocalState) -> None:
        state.grad_enabled = self.mode

    def restore(self, state: LocalState, before: Any) -> None:
        state.grad_enabled = before

    def __repr__(self) -> str:
        return f"plugrad.autograd.grad_mode.set_grad_enabled(mode={self.mode})"


def is_multithreading_enabled() -> bool:
    """Whether backward, called from this thread, may use the threads of devices.

    >>> import plugrad
    >>> with plugrad.autograd.set_multithreading_enabled(False):
    ...     plugrad.autograd.grad_mode.is_multithreading_enabled()
    False
    """
    return current_state().multithreading


class set_multithreading_enabled(_SetAtOnce):
    """Sets whether backward may use device threads, at once; as a context manager it restores the
    old mode.

    Without them the calling thread runs every node, whatever its device. It applies to this thread
    only.

    Raises:
        TypeError: `mode` is not a bool.

    >>> import plugrad
    >>> with plugrad.autograd.set_multithreading_enabled(False):
    ...     plugrad.autograd.is_multithreading_enabled()
    False
    """

    def read(self, state: LocalState) -> Any:
        return state.multithreading

    def change(self, state: LocalState) -> None:
        state.multithreading = self.mode

    def restore(self, state: LocalState, before: Any) -> None:
        state.multithreading = before


class enforce_grad_layout_policy(_SetAtOnce):
    """Sets whether a leaf's `.grad` must have the leaf's memory layout, at once; as a context
    manager it restores the old mode.

    Otherwise, a gradient that nothing else refers to becomes `.grad` directly, whatever its
    strides. It applies to this thread only, and to the backward passes that it starts.

    Raises:
        TypeError: `enable` is not a bool.

    >>> import plugrad
    >>> p = plugrad.ones(2, 3).t().requires_grad_()
    >>> with plugrad.autograd.enforce_grad_layout_policy(False):
    ...     p.sum().backward()
    """

    def prepare(self, enable: bool = True) -> None:
        super().prepare(enable)

    def read(self, state: LocalState) -> Any:
        return state.grad_layout

    def change(self, state: LocalState) -> None:
        state.grad_layout = self.mode

    def restore(self, state: LocalState, before: Any) -> None:
        state.grad_layout = before


class inference_mode(ModeManager):
    """Context manager and decorator: autograd ignores everything inside.

    New tensors are inference tensors, which have no version counter and are never recorded.
    Outside, operators on them give normal tensors, but they cannot be written to, saved for
    backward or made to require grad; `clone()` gives a normal tensor. Normal tensors and their
    views stay normal inside; these views must not be written to with autograd afterwards.

    Args:
        mode: False switches back to normal mode within an outer block.

    >>> import plugrad
    >>> x = plugrad.ones(2, requires_grad=True)
    >>> with plugrad.inference_mode():
    ...     y = x * x
    >>> y.requires_grad, y.is_inference(), (y + 1).is_inference()
    (False, True, False)
    >>> @plugrad.inference_mode()
    ... def f(x):
    ...     return x * x
    >>> f(x).is_inference()
    True
    """

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    @overload
    def __new__(cls, mode: _F) -> _F: ...  # type: ignore[misc]  # decorates at once
    def __new__(cls, mode: Any = True) -> Any:
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(mode)

    def read(self, state: LocalState) -> Any:
        return state.inference_mode, state.grad_enabled, state.multithreading, state.kept

    def change(self, state: LocalState) -> None:
        set_inference_mode(state, self.mode)
        state.grad_enabled = not self.mode
        state.multithreading = not self.mode
        both = AUTOGRAD_BIT | FORWARD_AD_BIT
        state.kept = state.kept & ~both if self.mode else state.kept | both

    def restore(self, state: LocalState, before: Any) -> None:
        mode, state.grad_enabled, state.multithreading, state.kept = before
        set_inference_mode(state, mode)


def decorate(function: Any, scope: Any) -> Any:
    """`function` with a mode set while it, or the generator it returns, runs."""
    if not callable(function):
        raise_argument_error(type(scope).__name__, "function", 1, "callable", function)
    if inspect.isgeneratorfunction(function):
        return _decorate_generator(function, scope)

    @functools.wraps(function)
    def with_mode(*args: Any, **kwargs: Any) -> Any:
        with Within(scope):
            return function(*args, **kwargs)

    return with_mode


def _decorate_generator(function: Any, scope: Scope) -> Any:
    """Only the generator's own code runs in the mode, not the code between its steps."""

    @functools.wraps(function)
    def with_mode(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        step = generator.__next__
        arguments: tuple[Any, ...] = ()
        while True:
            try:
                with Within(scope):
                    value = step(*arguments)
            except StopIteration as stop:
                return stop.value
            try:
                received = yield value
            except GeneratorExit:
                with Within(scope):
                    generator.close()
                raise
            except BaseException as error:
                step = generator.throw
                arguments = (error,)
            else:
                step = generator.send
                arguments = (received,)

    return with_mode
