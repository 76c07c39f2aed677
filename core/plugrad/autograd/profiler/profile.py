"""profile: the context manager that measures what runs inside it."""

from __future__ import annotations

# Interpreted: it warns at its caller's line, and compiled code has no frames to count.
from typing import TYPE_CHECKING, Any, Self

from plugrad.autograd.profiler.convert import events_of
from plugrad.autograd.profiler.event_list import EventList
from plugrad.autograd.profiler.events import FunctionEventAvg
from plugrad.autograd.profiler.recorder import Recorder
from plugrad.dispatch.caller import warn_at_caller
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.scope import Scope


class profile(Scope):
    """Context manager: times every operator, backward node and `record_function` block inside.

    It listens to the calling thread, and to the engine's threads while they run backward for it.
    Other threads are not profiled unless they enter a profile of their own. Profiles nest.

    Args:
        enabled: False switches the profiler off.
        record_shapes: keep the shapes of arguments; see `key_averages(group_by_input_shape=True)`.
        with_flops: estimate floating point operations from shapes.
        profile_memory: count bytes of results; docs/profiler.md describes which.
        with_stack: keep the callers of every operator.
        with_modules, use_kineto: accepted for compatibility with PyTorch, without effect.
        use_cpu: must be True, since only the host is profiled.
        use_device, use_cuda: ignored with a warning, for the same reason.

    Raises:
        RuntimeError: it is entered twice.

    >>> import plugrad
    >>> x = plugrad.ones(3, 3, requires_grad=True)
    >>> with plugrad.autograd.profiler.profile() as prof:
    ...     (x @ x).sum().backward()
    >>> [event.name for event in prof.function_events][:2]
    ['plugrad::matmul', 'plugrad::mm']
    >>> print(prof.key_averages().table(sort_by="count", row_limit=1))  # doctest: +ELLIPSIS
    ---...
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
    ) -> None:
        if not use_cpu:
            raise AssertionError(
                "No activities specified for the profiler"
                if use_kineto
                else "Device-only events supported only with Kineto (use_kineto=True)"
            )
        device = "cuda" if use_cuda else use_device
        if enabled and device is not None:
            warn_at_caller(f"The {device} is not a valid device option.")
        self.enabled = enabled
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.entered = False
        self._recorder: Recorder | None = None
        self._state: LocalState | None = None
        self._events: EventList | None = None

    def read(self, state: LocalState) -> Any:
        if self.enabled and self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        return None

    def change(self, state: LocalState) -> None:
        if self.enabled:
            self.entered = True
            self._start(state)

    def value(self) -> profile | None:
        return self if self.enabled else None

    if TYPE_CHECKING:
        # It is None only with `enabled=False`, so other programs need not check for it.
        def __enter__(self) -> Self | Any: ...

    @property
    def running(self) -> bool:
        """Whether it records.

        >>> from plugrad.autograd.profiler import profile
        >>> prof = profile()
        >>> with prof:
        ...     prof.running
        True
        >>> prof.running
        False
        """
        return self._state is not None

    def _start(self, state: LocalState) -> None:
        self._state = state
        self._recorder = Recorder(
            state.trace, self.record_shapes, self.profile_memory, self.with_stack
        )
        state.trace = self._recorder

    def restore(self, state: LocalState, before: Any) -> None:
        recorder, begun = self._recorder, self._state
        if recorder is not None and begun is not None:
            self._take_out(recorder, begun)
            recorder.stop()
        self._state = None

    def _take_out(self, recorder: Recorder, state: LocalState) -> None:
        # Profiles that began later and have not ended continue to record.
        if state.trace is recorder:
            state.trace = recorder.outer
        else:
            inner = state.trace
            while inner is not None and inner.outer is not recorder:
                inner = inner.outer
            if inner is not None:
                inner.outer = recorder.outer

    def _finished(self) -> EventList | None:
        """The events, made when they are first needed; None before there can be any."""
        if self._events is None and self._recorder is not None and self._state is None:
            self._events = events_of(
                self._recorder, profile_memory=self.profile_memory, with_flops=self.with_flops
            )
            self._recorder = None
        return self._events

    def _needed(self) -> EventList:
        events = self._finished()
        if events is None:
            raise AssertionError("Expected profiling results")
        return events

    def __repr__(self) -> str:
        events = self._finished()
        return "<unfinished torch.autograd.profile>" if events is None else repr(events)

    def __str__(self) -> str:
        events = self._finished()
        return "<unfinished torch.autograd.profile>" if events is None else str(events)

    def _repr_html_(self) -> str:
        from plugrad._notebooks import profile_html  # only notebooks need it

        return profile_html(self)

    @property
    def function_events(self) -> EventList | Any:
        """All events (an `EventList`); None while the profile is not finished.

        >>> import plugrad
        >>> from plugrad.autograd.profiler import profile
        >>> with profile() as prof:
        ...     _ = plugrad.ones(2).exp_()
        >>> [event.name for event in prof.function_events]
        ['plugrad::ones', 'plugrad::exp_']
        """
        return self._finished()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all events, each one counted once.

        >>> import plugrad
        >>> from plugrad.autograd.profiler import profile
        >>> with profile() as prof:
        ...     _ = plugrad.ones(2).exp()
        >>> prof.self_cpu_time_total > 0
        True
        """
        return self._needed().self_cpu_time_total

    def table(self, *args: Any, **kwargs: Any) -> str:
        """One line per event; takes the arguments of `EventList.table`.

        >>> import plugrad
        >>> from plugrad.autograd.profiler import profile
        >>> with profile() as prof:
        ...     _ = plugrad.ones(2).exp()
        >>> "plugrad::exp" in prof.table(row_limit=10)
        True
        """
        return self._needed().table(*args, **kwargs)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One average for all events of a name; see `EventList.key_averages`.

        >>> import plugrad
        >>> from plugrad.autograd.profiler import profile
        >>> x = plugrad.ones(2)
        >>> with profile() as prof:
        ...     _ = x.exp(), x.exp()
        >>> [(average.key, average.count) for average in prof.key_averages()]
        [('plugrad::exp', 2)]
        """
        return self._needed().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self) -> FunctionEventAvg:
        """The sums over all events, under the key "Total".

        >>> import plugrad
        >>> from plugrad.autograd.profiler import profile
        >>> x = plugrad.ones(2)
        >>> with profile() as prof:
        ...     _ = x.exp(), x.sin()
        >>> prof.total_average().count
        2
        """
        return self._needed().total_average()

    def export_chrome_trace(self, path: str) -> None:
        """Write a trace that https://ui.perfetto.dev and chrome://tracing show."""
        self._needed().export_chrome_trace(path)

    def export_html(self, path: str) -> None:
        """Write a page of HTML: a flame graph for each thread, and memory over time.

        The page needs no network. Memory is shown with ``profile_memory=True``.
        """
        self._needed().export_html(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write a line per event, for flame graphs; only with `with_stack=True`."""
        events = self._needed()
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        events.export_stacks(path, metric)
