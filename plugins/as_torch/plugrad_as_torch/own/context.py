"""`torch.utils._contextlib`: context managers that are decorators, too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager"]


class _DecoratorContextManager:
    """A context manager that can also decorate a function, which then runs in a block of its
    own."""

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(orig_func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return orig_func(*args, **kwargs)

        return inside

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
        raise NotImplementedError

    def clone(self) -> Any:
        """A copy of this block; override it where `__init__` takes arguments."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The same, but usable without parentheses: `@block`."""

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
