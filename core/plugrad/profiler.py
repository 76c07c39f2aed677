"""`plugrad.profiler`: the profiler for training loops, under the names of torch.profiler.

It starts and stops `plugrad.autograd.profiler`, which does the work, by the steps of a schedule.
"""

from __future__ import annotations

# Interpreted: it warns at its caller's line, and compiled code has no frames to count.
import enum
import html
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self

from plugrad.autograd.profiler import EventList
from plugrad.autograd.profiler import profile as _Window
from plugrad.autograd.profiler.record_function import record_function
from plugrad.dispatch.local_state import LocalState
from plugrad.dispatch.scope import Scope
from plugrad.tensor.calls.annotations import explains
from plugrad.tensor.calls.arguments import raise_argument_error

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
]


def __dir__() -> list[str]:
    return sorted(__all__)


class ProfilerActivity(enum.Enum):
    """What can be measured; see `supported_activities`.

    >>> from plugrad.profiler import ProfilerActivity, profile
    >>> with profile(activities=[ProfilerActivity.CPU]) as prof:
    ...     pass
    >>> len(prof.events())
    0
    """

    CPU = 0
    CUDA = 3


class ProfilerAction(enum.Enum):
    """The action of a schedule for a step.

    >>> from plugrad.profiler import ProfilerAction, schedule
    >>> schedule(wait=0, warmup=0, active=1)(0) is ProfilerAction.RECORD_AND_SAVE
    True
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def kineto_available() -> bool:
    """Whether PyTorch's library for tracing is available: never.

    >>> from plugrad.profiler import kineto_available
    >>> kineto_available()
    False
    """
    return False


def supported_activities() -> set[ProfilerActivity]:
    """What this profiler measures: time on the host.

    >>> from plugrad.profiler import supported_activities
    >>> supported_activities()
    {<ProfilerActivity.CPU: 0>}
    """
    return {ProfilerActivity.CPU}


@explains
def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Skip `skip_first` steps; then repeat: `wait`, `warmup`, record `active` steps.

    Args:
        repeat: the number of rounds; 0 for no end.
        skip_first_wait: leave the `wait` of the first round out if it is not 0.

    Raises:
        AssertionError: a number is negative, or `active` is 0.

    >>> from plugrad.profiler import schedule
    >>> plan = schedule(wait=1, warmup=0, active=2, repeat=1)
    >>> [plan(step).name for step in range(4)]
    ['NONE', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first, active - 1) < 0:
        raise AssertionError("Invalid profiler schedule arguments")
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        if repeat and step >= repeat * length:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


class profile(Scope):
    """Context manager: profiles all that runs inside, or the steps that a schedule selects.

    Args:
        activities: what to measure, by default all of `supported_activities()`.
        schedule: returns for each step, counted by `step()`, what to do; see `schedule`.
        on_trace_ready: called with the profile whenever a recording is complete.
        record_shapes, profile_memory, with_stack, with_flops, with_modules: as for
            `plugrad.autograd.profiler.profile`.

    >>> import plugrad
    >>> from plugrad.profiler import profile, schedule
    >>> x = plugrad.ones(2)
    >>> with profile(schedule=schedule(wait=1, warmup=1, active=2)) as prof:
    ...     for _ in range(4):
    ...         y = x * 2
    ...         prof.step()
    >>> {event.key: event.count for event in prof.key_averages()}
    {'ProfilerStep*': 2, 'plugrad::mul': 2}
    """

    @explains(name="profile")
    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
    ) -> None:
        self.activities = set(supported_activities() if activities is None else activities)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        for other in self.activities - supported_activities():
            warnings.warn(
                f"{other.name} is not available, disabling {other.name} profiling", stacklevel=3
            )
        for name, function in (("schedule", schedule), ("on_trace_ready", on_trace_ready)):
            if function is not None and not callable(function):
                raise_argument_error("profile", name, 0, "callable", function)
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self._options: dict[str, Any] = {
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_flops": with_flops,
            "with_modules": with_modules,
        }
        self._window: _Window | None = None
        self._label: record_function | None = None

    def read(self, state: LocalState) -> Any:
        return None

    def change(self, state: LocalState) -> None:
        self.start()

    def restore(self, state: LocalState, before: Any) -> None:
        try:
            self.stop()
        finally:
            if self._window is not None:
                self._window.restore(state, None)

    def value(self) -> profile:
        return self

    if TYPE_CHECKING:

        def __enter__(self) -> Self: ...

    def start(self) -> None:
        """Begin with step 0.

        >>> import plugrad
        >>> from plugrad.profiler import profile
        >>> prof = profile()
        >>> prof.start()
        >>> _ = plugrad.ones(2) * 2
        >>> prof.stop()
        >>> [event.name for event in prof.events()]
        ['plugrad::ones', 'plugrad::mul']
        """
        self._go_on()

    def step(self) -> None:
        """The next step begins.

        >>> import plugrad
        >>> from plugrad.profiler import profile, schedule
        >>> with profile(schedule=schedule(wait=1, warmup=0, active=1)) as prof:
        ...     for _ in range(2):
        ...         y = plugrad.ones(2) * 2
        ...         prof.step()
        >>> [event.name for event in prof.events()]
        ['ProfilerStep*', 'plugrad::ones', 'plugrad::mul']
        """
        self._close_label()
        self.step_num += 1
        self._go_on()

    def stop(self) -> None:
        """End the recording.

        >>> import plugrad
        >>> from plugrad.profiler import profile
        >>> x = plugrad.ones(2)
        >>> prof = profile(on_trace_ready=lambda prof: print(len(prof.events()), "event"))
        >>> prof.start()
        >>> y = x.exp()
        >>> prof.stop()
        1 event
        """
        self._close_label()
        if self.current_action in RECORDING:
            self._complete()
        self.current_action = ProfilerAction.NONE

    def _go_on(self) -> None:
        before = self.current_action
        now = ProfilerAction.RECORD if self.schedule is None else self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE or (
            before in RECORDING and now not in RECORDING
        ):
            self._complete()
            before = ProfilerAction.NONE
        self.current_action = now
        if now in RECORDING and before not in RECORDING:
            self._window = _Window(**self._options)
            self._window.__enter__()
        if self.schedule is not None:
            label = record_function(f"ProfilerStep#{self.step_num}")
            label.__enter__()
            self._label = label

    def _close_label(self) -> None:
        if self._label is not None:
            label, self._label = self._label, None
            label.__exit__(None, None, None)

    def _complete(self) -> None:
        if self._window is not None and self._window.running:
            self._window.__exit__(None, None, None)
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def _finished(self) -> _Window:
        """The last recording; AssertionError if there is none yet."""
        if self._window is None:
            raise AssertionError("Expected profiling results")
        return self._window

    def __str__(self) -> str:
        """The table of the last recording."""
        return repr(self) if self._window is None else str(self._window)

    def _repr_html_(self) -> str:
        return html.escape(repr(self)) if self._window is None else self._window._repr_html_()

    def events(self) -> EventList | Any:
        """The events of the last recording.

        >>> import plugrad
        >>> from plugrad.profiler import profile
        >>> x = plugrad.ones(2, requires_grad=True)
        >>> with profile() as prof:
        ...     y = x.exp()
        >>> [event.name for event in prof.events()]
        ['plugrad::exp']
        """
        return self._finished().function_events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One average for all events of a name; see `EventList.key_averages`.

        >>> import plugrad
        >>> from plugrad.profiler import profile
        >>> x = plugrad.ones(2)
        >>> with profile() as prof:
        ...     y = x.exp() + x.exp()
        >>> [(average.key, average.count) for average in prof.key_averages()]
        [('plugrad::exp', 2), ('plugrad::add', 1)]
        """
        return self._finished().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def export_chrome_trace(self, path: str) -> None:
        """Write a trace that https://ui.perfetto.dev and chrome://tracing show.

        >>> import json, os, tempfile
        >>> import plugrad
        >>> from plugrad.profiler import profile
        >>> with profile() as prof:
        ...     _ = plugrad.ones(2).exp()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "trace.json")
        ...     prof.export_chrome_trace(path)
        ...     with open(path) as file:
        ...         events = json.load(file)["traceEvents"]
        >>> any(event["name"] == "plugrad::exp" for event in events)
        True
        """
        self._finished().export_chrome_trace(path)

    def export_html(self, path: str) -> None:
        """Write a page: a flame graph for each thread, and memory with ``profile_memory=True``.

        >>> import os, tempfile
        >>> import plugrad
        >>> from plugrad.profiler import profile
        >>> with profile() as prof:
        ...     _ = plugrad.ones(2).exp()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "profile.html")
        ...     prof.export_html(path)
        ...     print(os.path.getsize(path) > 1000)
        True
        """
        self._finished().export_html(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write a line per event, for flame graphs; only with `with_stack=True`.

        >>> import os, tempfile
        >>> import plugrad
        >>> from plugrad.profiler import profile
        >>> with profile(with_stack=True) as prof:
        ...     _ = plugrad.ones(1000).exp()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "stacks.txt")
        ...     prof.export_stacks(path, "self_cpu_time_total")
        ...     print(os.path.exists(path))
        True
        """
        self._finished().export_stacks(path, metric)
