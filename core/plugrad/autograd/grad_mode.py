"""Whether operations are recorded: `no_grad`, `enable_grad`, `set_grad_enabled`."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from mypy_extensions import mypyc_attr

from plugrad.dispatch.local_state import current_state


def is_grad_enabled() -> bool:
    """Whether operations on this thread are recorded."""
    return current_state().grad_enabled


@mypyc_attr(allow_interpreted_subclasses=True)
class GradMode:
    """Sets grad mode within a `with` block, or within a function it decorates."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self.previous: list[bool] = []

    def __enter__(self) -> Any:
        state = current_state()
        self.previous.append(state.grad_enabled)
        state.grad_enabled = self.mode
        return None

    def __exit__(self, *exc_info: object) -> None:
        current_state().grad_enabled = self.previous.pop()

    def __call__(self, function: Any) -> Any:
        """Decorate a function, a generator function or a class's constructor."""
        return decorate(function, self.mode)


class no_grad(GradMode):
    """Context manager and decorator: operations inside are not recorded.

    >>> import plugrad
    >>> x = plugrad.ones(1, requires_grad=True)
    >>> with plugrad.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __new__(cls, function: Any = None) -> Any:
        if function is not None:
            return decorate(function, False)
        return super().__new__(cls)

    def __init__(self, function: Any = None) -> None:
        super().__init__(False)


class enable_grad(GradMode):
    """Context manager and decorator: operations inside are recorded, even within `no_grad`."""

    def __new__(cls, function: Any = None) -> Any:
        if function is not None:
            return decorate(function, True)
        return super().__new__(cls)

    def __init__(self, function: Any = None) -> None:
        super().__init__(True)


class set_grad_enabled(GradMode):
    """Sets grad mode to `mode`, at once; as a context manager it puts the old one back.

    >>> import plugrad
    >>> with plugrad.set_grad_enabled(False):
    ...     plugrad.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        state = current_state()
        self.before = state.grad_enabled
        state.grad_enabled = self.mode

    def __enter__(self) -> Any:
        self.previous.append(self.before)
        current_state().grad_enabled = self.mode
        return None

    def __call__(self, function: Any) -> Any:
        current_state().grad_enabled = self.before
        return decorate(function, self.mode)


def decorate(function: Any, mode: bool) -> Any:
    """`function` with grad mode set while it, or the generator it returns, runs."""
    if inspect.isgeneratorfunction(function):
        return _decorate_generator(function, mode)

    @functools.wraps(function)
    def with_mode(*args: Any, **kwargs: Any) -> Any:
        state = current_state()
        previous = state.grad_enabled
        state.grad_enabled = mode
        try:
            return function(*args, **kwargs)
        finally:
            state.grad_enabled = previous

    return with_mode


def _decorate_generator(function: Any, mode: bool) -> Any:
    """Only the generator's own code runs in the mode, not the code between its steps."""

    @functools.wraps(function)
    def with_mode(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        step = generator.__next__
        arguments: tuple[Any, ...] = ()
        while True:
            state = current_state()
            previous = state.grad_enabled
            state.grad_enabled = mode
            try:
                value = step(*arguments)
            except StopIteration as stop:
                return stop.value
            finally:
                state.grad_enabled = previous
            try:
                received = yield value
            except GeneratorExit:
                generator.close()
                raise
            except BaseException as error:
                step = generator.throw
                arguments = (error,)
            else:
                step = generator.send
                arguments = (received,)

    return with_mode
