"""FunctionEvent: one thing that ran, and when; FunctionEventAvg: the sums over several."""

from __future__ import annotations

# Interpreted: it runs when a profile is over.
import enum
from typing import Any

from plugrad.autograd.profiler.formatting import format_time


class DeviceType(enum.Enum):
    """Where the time of an event was measured.

    >>> import plugrad
    >>> from plugrad.autograd.profiler import DeviceType, profile
    >>> with profile() as prof:
    ...     _ = plugrad.ones(2).exp()
    >>> prof.function_events[0].device_type is DeviceType.CPU
    True
    """

    CPU = 0

    def __repr__(self) -> str:
        return str(self)


class Interval:
    """A stretch of time in microseconds since profiling began.

    >>> from plugrad.autograd.profiler import Interval
    >>> Interval(start=10.0, end=14.5).elapsed_us()
    4.5
    """

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """Its length."""
        return self.end - self.start


class _Totals:
    """What single events and averages have in common, from `cpu_time_total` and `count`.

    Time is measured on the host alone. Names with "device" exist for programs that sort by them.
    """

    count: int
    device_time = device_time_total = self_device_time_total = 0.0
    device_memory_usage = self_device_memory_usage = 0

    @property
    def cpu_time_total(self) -> float:
        raise NotImplementedError

    @property
    def self_cpu_time_total(self) -> float:
        raise NotImplementedError

    @property
    def cpu_time(self) -> float:
        """Microseconds per call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        """`cpu_time` with its unit."""
        return format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        """`cpu_time_total` with its unit."""
        return format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """`self_cpu_time_total` with its unit."""
        return format_time(self.self_cpu_time_total)


class FunctionEvent(_Totals):
    """One call of an operator or Function, one run of a backward node, or one labelled block.

    Attributes:
        id: counts events from 1 in the order in which they began.
        name: ``plugrad::mul``, ``MulBackward0``, or the label of a block.
        trace_name: its name in the exported trace, where steps have numbers.
        overload_name: ``Tensor`` for ``mul.Tensor``; empty for anything but operators.
        time_range: from when to when, in microseconds since profiling began.
        thread: the thread it began on, counted from 1.
        fwd_thread: for a backward node, the thread of the call that made it; 0 otherwise.
        sequence_nr: the number of the node that the call made, and of that node; -1 for none.
        forward_event: for a backward node, the call that made it, if that was recorded.
        cpu_parent, cpu_children: the event that it ran in, and the events that ran in it.
        input_shapes: per argument its shape, a list of them for a list of tensors, [] for what
            is not a tensor; with `record_shapes`.
        stack: ``file(line): function`` of the callers, innermost first; with `with_stack`. A
            backward node has the stack of the call that made it.
        cpu_memory_usage: bytes allocated less bytes freed while it ran; with `profile_memory`.
        flops: estimated floating point operations; with `with_flops`.
        scope: 0 for calls, 1 for backward nodes, 7 for `record_function`.
        is_async: a `record_function` block that ended on another thread than it began, or before
            another one that began within; it has no children.
        is_user_annotation: it is a `record_function` block.
        kernel: the package and name of the kernel variant that ran, if one did.

    >>> import plugrad
    >>> from plugrad.autograd.profiler import profile
    >>> x = plugrad.ones(2, 3, requires_grad=True)
    >>> with profile(record_shapes=True) as prof:
    ...     _ = x.exp()
    >>> event = prof.function_events[0]
    >>> event.name, event.input_shapes, event.thread, event.scope
    ('plugrad::exp', [[2, 3]], 1, 0)
    """

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str = "",
        fwd_thread: int | None = None,
        input_shapes: list[Any] | None = None,
        stack: list[str] | None = None,
        scope: int = 0,
        cpu_memory_usage: int = 0,
        is_async: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        flops: int = 0,
        trace_name: str | None = None,
        is_user_annotation: bool = False,
        kernel: str = "",
    ) -> None:
        self.id = id
        self.node_id = node_id
        self.name = name
        self.overload_name = overload_name
        self.trace_name = name if trace_name is None else trace_name
        self.time_range = Interval(start_us, end_us)
        self.thread = thread
        self.fwd_thread = fwd_thread
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.input_shapes: Any = [] if input_shapes is None else input_shapes
        self.stack: list[str] = [] if stack is None else stack
        self.scope = scope
        self.cpu_memory_usage = cpu_memory_usage
        self.is_async = is_async
        self.is_remote = False
        self.sequence_nr = sequence_nr
        self.device_type = DeviceType.CPU
        self.flops = flops
        self.is_user_annotation = is_user_annotation
        self.kernel = kernel
        self.forward_event: FunctionEvent | None = None

    @property
    def key(self) -> str:
        """What events are grouped by: the name."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """Microseconds from its beginning to its end."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        """The same without its children; 0 if it is asynchronous.

        >>> import plugrad
        >>> from plugrad.autograd.profiler import profile, record_function
        >>> with profile() as prof:
        ...     with record_function("block"):
        ...         _ = plugrad.ones(1000).exp()
        >>> block = prof.function_events[0]
        >>> block.name, block.self_cpu_time_total < block.cpu_time_total
        ('block', True)
        """
        if self.is_async:
            return 0.0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """`cpu_memory_usage` without its children; 0 if it is asynchronous.

        >>> from plugrad.autograd.profiler import FunctionEvent
        >>> block = FunctionEvent(1, "block", 1, 0.0, 9.0, cpu_memory_usage=64)
        >>> block.append_cpu_child(FunctionEvent(2, "exp", 1, 1.0, 4.0, cpu_memory_usage=40))
        >>> block.self_cpu_memory_usage
        24
        """
        if self.is_async:
            return 0
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Note that `child` ran within this event."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Note what this event ran within."""
        self.cpu_parent = parent

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr}>"
        )


class FunctionEventAvg(_Totals):
    """The sums over several events of one key; `cpu_time` is the mean.

    >>> from plugrad.autograd.profiler import FunctionEvent, FunctionEventAvg
    >>> average = FunctionEventAvg()
    >>> average += FunctionEvent(id=1, name="f", thread=1, start_us=0.0, end_us=2.0)
    >>> average += FunctionEvent(id=2, name="f", thread=1, start_us=2.0, end_us=6.0)
    >>> average.key, average.count, average.cpu_time_total, average.cpu_time
    ('f', 2, 6.0, 3.0)
    """

    # Sums where a single event computes.
    cpu_time_total = 0.0
    self_cpu_time_total = 0.0

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.node_id = -1
        self.is_async = False
        self.is_remote = False
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.input_shapes: Any = None
        self.overload_name = ""
        self.stack: list[str] = []
        self.scope = 0
        self.cpu_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.device_type = DeviceType.CPU
        self.flops = 0
        self.is_user_annotation = False
        self.kernel = ""

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Add an event, or all events of another average, with the same key.

        >>> from plugrad.autograd.profiler import FunctionEvent, FunctionEventAvg
        >>> average = FunctionEventAvg()
        >>> _ = average.add(FunctionEvent(id=1, name="f", thread=1, start_us=0.0, end_us=2.0))
        >>> average.key, average.count
        ('f', 1)
        """
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if self.key is None:
            self.key = other.key
            for name in (
                *("node_id", "is_async", "is_remote", "cpu_parent", "cpu_children", "scope"),
                *("overload_name", "input_shapes", "stack", "device_type", "is_user_annotation"),
            ):
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        self._add_numbers(other)
        if other.kernel and other.kernel not in self.kernel.split(", "):
            self.kernel = f"{self.kernel}, {other.kernel}".removeprefix(", ")
        return self

    def _add_numbers(self, other: FunctionEvent | FunctionEventAvg) -> None:
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.count += other.count
        self.flops += other.flops

    @classmethod
    def total_of(cls, events: list[Any]) -> FunctionEventAvg:
        """The sums over events of whatever keys; its own key is "Total".

        >>> from plugrad.autograd.profiler import FunctionEvent, FunctionEventAvg
        >>> events = [FunctionEvent(1, "f", 1, 0.0, 2.0), FunctionEvent(2, "g", 1, 2.0, 5.0)]
        >>> FunctionEventAvg.total_of(events).cpu_time_total
        5.0
        """
        total = cls()
        for event in events:
            total._add_numbers(event)
        total.key = "Total"
        return total

    def __iadd__(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        return self.add(other)

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )
