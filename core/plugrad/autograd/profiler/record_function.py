"""record_function: gives a stretch of a program a name in the profile."""

from __future__ import annotations

# Interpreted: its class subclasses ContextDecorator.
from contextlib import ContextDecorator

from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.trace import Trace


class record_function(ContextDecorator):
    """Context manager and decorator: what runs inside is one event of the profile, called `name`.

    Costs next to nothing when nobody profiles.

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
        self._entered: list[tuple[Trace, object] | None] = []

    def __enter__(self) -> record_function:
        trace = current_state().trace
        if trace is None:
            self._entered.append(None)
        else:
            key = object()
            self._entered.append((trace, key))
            trace.enter_range(key, self.name, ())
        return self

    def __exit__(self, *exc_info: object) -> None:
        entered = self._entered.pop()
        if entered is not None:
            trace, key = entered
            trace.leave_range(key)
