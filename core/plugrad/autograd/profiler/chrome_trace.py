"""Events in Chrome's trace format, which https://ui.perfetto.dev and chrome://tracing show.

X       an event: when it began and how long it took, on the row of its thread
b, e    the same for one that overlaps others, on a row of its own
s -> f  an arrow from a call to the backward node that it made
C       bytes held by results of operators
M       names of process and threads
"""

from __future__ import annotations

# Interpreted: it runs when a profile is over.
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class TraceContext:
    """Information that events do not hold themselves.

    Attributes:
        threads: per thread number its id in the operating system, and its name.
        memory: pairs of time in microseconds and bytes held.
    """

    threads: dict[int, tuple[int, str]] = field(default_factory=dict)
    memory: list[tuple[float, int]] = field(default_factory=list)


def write_chrome_trace(path: str, events: Sequence[Any], context: TraceContext) -> None:
    """Write `FunctionEvent`s; times are microseconds since profiling began."""
    trace = {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "traceEvents": list(_entries(events, context)),
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(trace, file)


def _entries(events: Sequence[Any], context: TraceContext) -> Iterator[dict[str, Any]]:
    pid = os.getpid()
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "plugrad"}}
    for number in sorted({event.thread for event in events}):
        tid, name = context.threads.get(number, (number, f"thread {number}"))
        where = {"ph": "M", "pid": pid, "tid": tid}
        yield {**where, "name": "thread_name", "args": {"name": name}}
        yield {**where, "name": "thread_sort_index", "args": {"sort_index": number}}
    for event in events:
        yield from _of_event(event, pid, context)
    for time, held in context.memory:
        counter = {"ph": "C", "name": "Memory", "pid": pid, "tid": 0}
        yield {**counter, "ts": _us(time), "args": {"bytes": held}}


def _of_event(event: Any, pid: int, context: TraceContext) -> Iterator[dict[str, Any]]:
    start, end = _us(event.time_range.start), _us(event.time_range.end)
    tid, _ = context.threads.get(event.thread, (event.thread, ""))
    place = {"pid": pid, "tid": tid}
    category = "user_annotation" if event.is_user_annotation else "cpu_op"
    named = {"cat": category, "name": event.trace_name, **place}
    if event.is_async:
        yield {"ph": "b", **named, "id": event.id, "ts": start, "args": _arguments(event)}
        yield {"ph": "e", **named, "id": event.id, "ts": end}
        return
    yield {"ph": "X", **named, "ts": start, "dur": _us(end - start), "args": _arguments(event)}
    made_by = event.forward_event
    if made_by is not None and event.scope == 1:
        tid, _ = context.threads.get(made_by.thread, (made_by.thread, ""))
        arrow = {"cat": "fwdbwd", "name": "fwdbwd", "id": event.id, "pid": pid}
        yield {"ph": "s", **arrow, "tid": tid, "ts": _us(made_by.time_range.start)}
        yield {"ph": "f", "bp": "e", **arrow, "tid": place["tid"], "ts": start}


def _arguments(event: Any) -> dict[str, Any]:
    """What Perfetto shows of the event that is selected."""
    found: dict[str, Any] = {"External id": event.id}
    if event.overload_name:
        found["Overload"] = event.overload_name
    if event.kernel:
        found["Kernel"] = event.kernel
    if event.sequence_nr >= 0:
        found["Sequence number"] = event.sequence_nr
    if event.fwd_thread:
        found["Fwd thread id"] = event.fwd_thread
    if event.input_shapes:
        found["Input Dims"] = event.input_shapes
    if event.cpu_memory_usage:
        found["Bytes"] = event.cpu_memory_usage
    if event.stack:
        found["Call stack"] = ";".join(event.stack)
    return found


def _us(time: float) -> float:
    """To the nanosecond, which is what was measured."""
    return round(time, 3)
