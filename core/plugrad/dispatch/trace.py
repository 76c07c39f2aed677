"""Dispatch traces: which operator was called, and by which key each kernel ran.

`PLUGRAD_SHOW_DISPATCH_TRACE=1` prints calls and redispatches to stderr, in the form

     [call] op=[plugrad::mul.Tensor], key=[AutogradCPU]
      [redispatch] op=[plugrad::mul.Tensor], key=[CPU]

and where the kernel is not the backend's own: ``kernel=[plugrad-fast 1.0]``. If a variant computed
the call, a line after it names that:

       [variant] op=[plugrad::exp], kernel=[plugrad-fast 1.0: avx512]
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Final, final

from mypy_extensions import i64

from plugrad.dispatch.listener import Trace
from plugrad.dispatch.local_state import LocalState, current_state, trace_new_threads
from plugrad.dispatch.operator import Operator
from plugrad.dispatch.scope import Scope


@final
class TraceEvent:
    """One line of a trace.

    Attributes:
        kind: "call", "redispatch", "declined": a kernel left the call to the next one, or
            "variant": one of several kernels was chosen and has computed it.
        depth: starts at 0.
        kernel: the distribution that provides the kernel, with its version, if `key` is a
            backend's.
        foreign: whether another distribution than the backend's provides it; then a line shows it.
    """

    def __init__(
        self, kind: str, op: str, key: str, depth: int, kernel: str = "", foreign: bool = False
    ) -> None:
        self.kind = kind
        self.op = op
        self.key = key
        self.depth = depth
        self.kernel = kernel
        self.foreign = foreign

    def __repr__(self) -> str:
        text = f"{' ' * (self.depth + 1)}[{self.kind}] op=[{self.op}]"
        if self.key:
            text += f", key=[{self.key}]"
        return f"{text}, kernel=[{self.kernel}]" if self.foreign else text


@final
class DispatchTrace(Trace):
    """Notes calls and redispatches: prints them to a stream, or keeps them if there is none."""

    def __init__(self, stream: Any, outer: Trace | None = None) -> None:
        super().__init__(outer)
        self.stream = stream
        self.events: list[TraceEvent] = []
        # By thread; a device's thread belongs to the trace of the thread that it works for.
        self.depths: dict[int, int] = {}

    def dispatch(self, kind: str, op: Operator, keyset: i64, args: tuple[object, ...]) -> Any:
        key = op.resolve_key(keyset)
        owner, foreign = op.kernel_owner(keyset)
        thread = threading.get_ident()
        depth = self.depths.get(thread, 0)
        self._note(TraceEvent(kind, op.qualified_name, key, depth, owner, foreign))
        self.depths[thread] = depth + 1
        try:
            return super().dispatch(kind, op, keyset, args)
        finally:
            self.depths[thread] = depth

    def decline(self, operator: str, owner: str) -> None:
        depth = self.depths.get(threading.get_ident(), 0)
        self._note(TraceEvent("declined", operator, "", depth, owner, True))
        super().decline(operator, owner)

    def choose(self, operator: str, kernel: str) -> None:
        depth = self.depths.get(threading.get_ident(), 0)
        self._note(TraceEvent("variant", operator, "", depth, kernel, True))
        super().choose(operator, kernel)

    def _note(self, event: TraceEvent) -> None:
        if self.stream is None:
            self.events.append(event)
        else:
            print(event, file=self.stream)


@final
class show_dispatch_trace(Scope):
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

    def read(self, state: LocalState) -> Any:
        return state.trace

    def change(self, state: LocalState) -> None:
        state.trace = DispatchTrace(sys.stderr if self.file is None else self.file, state.trace)

    def restore(self, state: LocalState, before: Any) -> None:
        state.trace = before

    def value(self) -> Any:
        return current_state().trace


@final
class record_dispatch_trace(Scope):
    """Context manager: collect this thread's dispatch; its value is the list of `TraceEvent`s.

    >>> import plugrad
    >>> x = plugrad.ones(2)
    >>> with plugrad.record_dispatch_trace() as events:
    ...     y = x * x
    >>> [(event.kind, event.key) for event in events]
    [('call', 'AutogradCPU'), ('redispatch', 'CPU')]
    """

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []

    def read(self, state: LocalState) -> Any:
        return state.trace

    def change(self, state: LocalState) -> None:
        trace = DispatchTrace(None, state.trace)
        self.events = trace.events
        state.trace = trace

    def restore(self, state: LocalState, before: Any) -> None:
        state.trace = before

    def value(self) -> Any:
        return self.events


ENVIRONMENT_VARIABLE: Final = "PLUGRAD_SHOW_DISPATCH_TRACE"


def install_from_environment() -> None:
    """Trace every thread if the environment variable is set."""
    if os.environ.get(ENVIRONMENT_VARIABLE, "") not in ("", "0"):
        trace_new_threads(DispatchTrace(sys.stderr))
