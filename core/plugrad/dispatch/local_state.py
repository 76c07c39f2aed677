"""The state of dispatch and autograd per thread: included and excluded keys, grad mode, the tracer.

Code reads `current_state()` once per dispatch and passes the object on. Reading a `threading.local`
is slow (callgrind: 411 instructions), reading the thread's number is fast, so the state of the last
thread that called it is cached with its number.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Final, final

from mypy_extensions import i64

from plugrad._intrinsics import thread_number
from plugrad.device import Chosen, choose_devices, chosen_devices
from plugrad.dispatch.autocast_state import AutocastState
from plugrad.dispatch.keys import AD_INPLACE_OR_VIEW_BIT
from plugrad.dispatch.listener import Trace

_NO_THREAD: Final[i64] = -1


@final
class LocalState:
    """One thread's state.

    Attributes:
        included: key-set bits added to every call; ADInplaceOrView is included, so that views of
            inference tensors and writes to them, which lack that key, are noticed.
        kept: complement of the excluded bits; a call's key set is masked with it.
        grad_enabled: whether operations are recorded.
        sequence_nr: the number of the next node made on this thread.
        trace: the listener of dispatch, or None.
        inference_mode: whether new tensors are inference tensors.
        saved_tensor_hooks: the active pairs of pack and unpack, innermost last; None for none.
        saved_tensor_hooks_error: why such hooks are forbidden now, or None.
        multithreading: whether backward may use the threads of devices.
        grad_layout: whether a leaf's first gradient must have the leaf's memory layout.
        graph_task: the backward pass that this thread works for, or None.
        worker: the `DeviceThread` of this thread, if it is a device's; else None.
        depth: how many backward passes are nested on this thread.
        node: the node of a backward pass that this thread runs, or None.
        overrides_off: 1 if subclasses of Tensor cannot override functions now, 2 if nothing can.
        function_modes: functions that return the modes that intercept every function call,
            innermost last; they return None for a mode that was freed. None for none.
        array_log: records tensors that get other arrays; see `tensor/aliasing/array_log.py`.
        checkpoint_group: the number under which checkpoints recompute now; 0: each pass has its
            own.
        autocast: autocast's state; None if it was never used. The key is in `included` while
            it is on for some backend.
        level: the innermost transform that runs, a `Level` of `tensor/levels.py`; None for none.
            The key is in `included` while there is one.
        host_numbers: whether the host draws the random numbers for all devices.
        scopes: the blocks that the thread is in, innermost last; see `scope.py`.
        thread: the thread's number, as long as the thread runs.
    """

    def __init__(self) -> None:
        self.thread: i64 = _NO_THREAD
        self.included: i64 = AD_INPLACE_OR_VIEW_BIT
        self.kept: i64 = -1
        self.grad_enabled: bool = True
        self.sequence_nr: i64 = 0
        self.trace: Trace | None = _for_new_threads.trace
        self.inference_mode: bool = False
        self.saved_tensor_hooks: tuple[tuple[Any, Any], ...] | None = None
        self.saved_tensor_hooks_error: str | None = None
        self.multithreading: bool = True
        self.grad_layout: bool = True
        self.graph_task: Any = None
        self.worker: Any = None
        self.depth: i64 = 0
        self.node: Any = None
        self.overrides_off: i64 = 0
        self.function_modes: tuple[Any, ...] | None = None
        self.array_log: Any = None
        self.checkpoint_group: i64 = 0
        self.autocast: AutocastState | None = None
        self.level: Any = None
        self.host_numbers: bool = False
        self.scopes: list[Any] = []


@final
class _ForNewThreads:
    """What a thread's state starts from: `PLUGRAD_SHOW_DISPATCH_TRACE` traces every thread."""

    def __init__(self) -> None:
        self.trace: Trace | None = None


_for_new_threads: Final = _ForNewThreads()
_local: Final[Any] = threading.local()


@final
class _Last:
    """The state of the thread that called last."""

    def __init__(self) -> None:
        self.state = _nobody


_nobody: Final = LocalState()
_last: Final = _Last()


@final
class _Lifetime:
    """Freed with its thread; another thread can then get the same number."""

    def __init__(self, state: LocalState) -> None:
        self.state = state
        # Kept here: a thread may end after this module's names are deleted.
        self.last = _last
        self.nobody = _nobody

    def __del__(self) -> None:
        self.state.thread = -1
        if self.last.state is self.state:
            self.last.state = self.nobody


def set_current_state(state: LocalState) -> None:
    """Make `state` the calling thread's from now on."""
    former: LocalState | None = getattr(_local, "state", None)
    if former is not None:
        former.thread = _NO_THREAD
    _local.state = state
    _local.lifetime = _Lifetime(state)
    state.thread = thread_number()
    _last.state = state


def _state_of_thread() -> LocalState:
    state: LocalState | None = getattr(_local, "state", None)
    if state is None:
        state = LocalState()
        set_current_state(state)
    else:
        _last.state = state
    return state


def current_state() -> LocalState:
    """The calling thread's state."""
    state = _last.state
    return state if state.thread == thread_number() else _state_of_thread()


def _leave_threads_behind() -> None:
    """In a child process only one thread continues."""
    _last.state.thread = _NO_THREAD
    state: LocalState | None = getattr(_local, "state", None)
    if state is not None:
        state.thread = thread_number()
        _last.state = state


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_threads_behind)


def trace_new_threads(trace: Trace | None) -> None:
    """Set the trace that threads start with, the calling one included."""
    _for_new_threads.trace = trace
    current_state().trace = trace


def hear_new_threads(trace: Trace) -> None:
    """Threads that first use plugrad from now on start with a trace, which observes calls before
    earlier ones."""
    trace.outer = _for_new_threads.trace
    _for_new_threads.trace = trace


def leave_new_threads(trace: Trace) -> None:
    """They no longer do. Idempotent; threads that have begun are as they were."""
    head = _for_new_threads.trace
    if head is trace:
        _for_new_threads.trace = trace.outer
        return
    while head is not None:
        if head.outer is trace:
            head.outer = trace.outer
            return
        head = head.outer


@final
class Watch:
    """The number of threads that are in inference mode or have an array log for new tensors. While
    it is 0, making or reading a tensor does not look up the thread's state."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.threads: i64 = 0
        self._watchers: set[object] = set()

    def add(self, watcher: object) -> None:
        """Count one more, represented by the object. Idempotent."""
        with self.lock:
            self._watchers.add(watcher)
            self.threads = len(self._watchers)

    def discard(self, watcher: object) -> None:
        """Count one less. Idempotent."""
        with self.lock:
            self._watchers.discard(watcher)
            self.threads = len(self._watchers)


WATCH: Final = Watch()


def set_inference_mode(state: LocalState, mode: bool) -> None:
    """Say whether a thread's new tensors are inference tensors."""
    if not mode:
        WATCH.discard(state)
    elif not state.inference_mode:
        WATCH.add(state)
    state.inference_mode = mode


@final
class Snapshot:
    """The part of a thread's state that travels with a graph to the threads that run it."""

    def __init__(self, state: LocalState) -> None:
        self.included: i64 = state.included
        self.kept: i64 = state.kept
        self.grad_enabled: bool = state.grad_enabled
        self.trace: Trace | None = state.trace
        self.inference_mode: bool = state.inference_mode
        self.saved_tensor_hooks: tuple[tuple[Any, Any], ...] | None = state.saved_tensor_hooks
        self.saved_tensor_hooks_error: str | None = state.saved_tensor_hooks_error
        self.multithreading: bool = state.multithreading
        self.grad_layout: bool = state.grad_layout
        self.overrides_off: i64 = state.overrides_off
        self.function_modes: tuple[Any, ...] | None = state.function_modes
        self.devices: Chosen | None = chosen_devices()
        self.array_log: Any = state.array_log
        self.checkpoint_group: i64 = state.checkpoint_group
        self.autocast: AutocastState | None = state.autocast
        self.level: Any = state.level
        self.host_numbers: bool = state.host_numbers

    def restore(self, state: LocalState) -> None:
        """Restore a thread's state from the snapshot."""
        state.included = self.included
        state.kept = self.kept
        state.grad_enabled = self.grad_enabled
        state.trace = self.trace
        state.inference_mode = self.inference_mode
        state.saved_tensor_hooks = self.saved_tensor_hooks
        state.saved_tensor_hooks_error = self.saved_tensor_hooks_error
        state.multithreading = self.multithreading
        state.grad_layout = self.grad_layout
        state.overrides_off = self.overrides_off
        state.function_modes = self.function_modes
        choose_devices(self.devices)
        state.array_log = self.array_log
        state.checkpoint_group = self.checkpoint_group
        state.autocast = self.autocast
        state.level = self.level
        state.host_numbers = self.host_numbers
