"""What dispatch and autograd keep per thread: included and excluded keys, grad mode, the tracer.

Reading a `threading.local` costs more than a native attribute, so code reads `current_state()`
once per dispatch and passes the object on.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, final

from mypy_extensions import i64

if TYPE_CHECKING:
    from plugrad.dispatch.trace import Trace


@final
class LocalState:
    """One thread's state.

    Attributes:
        included: key-set bits added to every call.
        kept: complement of the excluded bits; a call's key set is masked with it.
        grad_enabled: whether operations are recorded.
        sequence_nr: what the next node created on this thread is numbered.
        trace: who listens to dispatch, or None.
    """

    def __init__(self) -> None:
        self.included: i64 = 0
        self.kept: i64 = -1
        self.grad_enabled: bool = True
        self.sequence_nr: i64 = 0
        self.trace: Trace | None = _for_new_threads.trace


@final
class _ForNewThreads:
    """What a thread's state starts from: `PLUGRAD_SHOW_DISPATCH_TRACE` traces every thread."""

    def __init__(self) -> None:
        self.trace: Trace | None = None


_for_new_threads: Final = _ForNewThreads()
_local: Final[Any] = threading.local()


def _make_state() -> LocalState:
    state = LocalState()
    _local.state = state
    return state


def current_state() -> LocalState:
    """The calling thread's state."""
    try:
        state: LocalState = _local.state
    except AttributeError:
        return _make_state()
    return state


def trace_new_threads(trace: Trace | None) -> None:
    """Set the trace that threads start with, the calling one included."""
    _for_new_threads.trace = trace
    current_state().trace = trace


@final
class Snapshot:
    """The part of a thread's state that travels with a graph to the threads that run it."""

    def __init__(self, included: i64, kept: i64, grad_enabled: bool) -> None:
        self.included = included
        self.kept = kept
        self.grad_enabled = grad_enabled


def take_snapshot(state: LocalState) -> Snapshot:
    return Snapshot(state.included, state.kept, state.grad_enabled)


def restore_snapshot(state: LocalState, snapshot: Snapshot) -> None:
    state.included = snapshot.included
    state.kept = snapshot.kept
    state.grad_enabled = snapshot.grad_enabled


@final
class IncludeKeys:
    """Context manager: add the bits of a mask to every call's key set on this thread."""

    def __init__(self, mask: int) -> None:
        self.mask = mask
        self.previous: list[int] = []

    def __enter__(self) -> IncludeKeys:
        state = current_state()
        self.previous.append(state.included)
        state.included = state.included | self.mask
        return self

    def __exit__(self, *exc_info: object) -> None:
        current_state().included = self.previous.pop()


@final
class ExcludeKeys:
    """Context manager: take the bits of a mask out of every call's key set on this thread."""

    def __init__(self, mask: int) -> None:
        self.mask = mask
        self.previous: list[int] = []

    def __enter__(self) -> ExcludeKeys:
        state = current_state()
        self.previous.append(state.kept)
        state.kept = state.kept & ~self.mask
        return self

    def __exit__(self, *exc_info: object) -> None:
        current_state().kept = self.previous.pop()
