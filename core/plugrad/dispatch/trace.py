"""Dispatch traces: which kernel of which operator ran, indented by depth.

`PLUGRAD_SHOW_DISPATCH_TRACE=1` prints them to stderr, in the form

     [call] op=[plugrad::mul.Tensor], key=[AutogradCPU]
      [redispatch] op=[plugrad::mul.Tensor], key=[CPU]
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final, final

from mypy_extensions import i64

from plugrad.dispatch.local_state import current_state, trace_new_threads

if TYPE_CHECKING:
    from plugrad.dispatch.operator import Operator


@final
class TraceEvent:
    """One line of a trace: `kind` is "call" or "redispatch"; `depth` starts at 0."""

    def __init__(self, kind: str, op: str, key: str, depth: int) -> None:
        self.kind = kind
        self.op = op
        self.key = key
        self.depth = depth

    def __repr__(self) -> str:
        return f"{' ' * (self.depth + 1)}[{self.kind}] op=[{self.op}], key=[{self.key}]"


class Trace:
    """Listens to dispatch on the threads it is installed on; prints or records, or both."""

    def __init__(self, stream: Any, outer: Trace | None = None) -> None:
        self.stream = stream
        self.outer = outer
        self.events: list[TraceEvent] = []
        self.depth = 0

    def dispatch(self, kind: str, op: Operator, keyset: i64, args: tuple[object, ...]) -> Any:
        """Run the operator's kernel for a key set, one level deeper, having noted it."""
        key = op.resolve_key(keyset)
        self.note(TraceEvent(kind, op.qualified_name, key, self.depth))
        self.depth += 1
        try:
            return op.lookup(keyset)(keyset, *args)
        finally:
            self.depth -= 1

    def note(self, event: TraceEvent) -> None:
        if self.stream is None:
            self.events.append(event)
        else:
            print(event, file=self.stream)
        if self.outer is not None:
            self.outer.note(event)


@final
class show_dispatch_trace:
    """Context manager: print this thread's dispatch to `file` (default: standard error).

    >>> import sys, plugrad
    >>> x = plugrad.ones(2)
    >>> with plugrad.show_dispatch_trace(file=sys.stdout):
    ...     y = x * x
     [call] op=[plugrad::mul.Tensor], key=[AutogradCPU]
      [redispatch] op=[plugrad::mul.Tensor], key=[CPU]
    """

    def __init__(self, file: Any = None) -> None:
        self.file = file
        self.previous: list[Trace | None] = []

    def __enter__(self) -> Trace:
        state = current_state()
        self.previous.append(state.trace)
        trace = Trace(sys.stderr if self.file is None else self.file)
        state.trace = trace
        return trace

    def __exit__(self, *exc_info: object) -> None:
        current_state().trace = self.previous.pop()


@final
class record_dispatch_trace:
    """Context manager: collect this thread's dispatch; its value is the list of `TraceEvent`s.

    >>> import plugrad
    >>> x = plugrad.ones(2)
    >>> with plugrad.record_dispatch_trace() as events:
    ...     y = x * x
    >>> [(event.kind, event.key) for event in events]
    [('call', 'AutogradCPU'), ('redispatch', 'CPU')]
    """

    def __init__(self) -> None:
        self.previous: list[Trace | None] = []

    def __enter__(self) -> list[TraceEvent]:
        state = current_state()
        self.previous.append(state.trace)
        trace = Trace(None, outer=state.trace)
        state.trace = trace
        return trace.events

    def __exit__(self, *exc_info: object) -> None:
        current_state().trace = self.previous.pop()


ENVIRONMENT_VARIABLE: Final = "PLUGRAD_SHOW_DISPATCH_TRACE"


def install_from_environment() -> None:
    """Trace every thread when the environment variable asks for it."""
    if os.environ.get(ENVIRONMENT_VARIABLE, "") not in ("", "0"):
        trace_new_threads(Trace(sys.stderr))
