"""record_function: names a part of a program in the profile."""

from __future__ import annotations

# Interpreted: its class subclasses ContextDecorator.
from contextlib import ContextDecorator
from typing import TYPE_CHECKING, Any, Self

from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.scope import Scope


class record_function(Scope, ContextDecorator):
    """Context manager and decorator: what runs inside is one event of the profile, called `name`.

    It costs very little while there is no profile.

    >>> import plugrad
    >>> from plugrad.autograd.profiler import profile, record_function
    >>> x = plugrad.ones(2)
    >>> with profile() as prof:
    ...     with record_function("twice"):
    ...         y = x + x
    >>> [event.name for event in prof.function_events]
    ['twice', 'plugrad::add']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        # A decorated function may call itself: one key for each time that it was entered.
        self._key = object()

    def read(self, state: LocalState) -> Any:
        self._key = object()
        return state.trace, self._key

    def change(self, state: LocalState) -> None:
        trace = state.trace
        if trace is not None:
            trace.enter_range(self._key, self.name, ())

    def restore(self, state: LocalState, before: Any) -> None:
        trace, key = before
        if trace is not None:
            trace.leave_range(key)

    def value(self) -> record_function:
        return self

    if TYPE_CHECKING:

        def __enter__(self) -> Self: ...
