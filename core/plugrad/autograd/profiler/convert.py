"""Converts a recorder's records to the events that users see."""

from __future__ import annotations

# Interpreted: it runs when a profile is over.
import functools
import itertools
import os
import sys
from collections import Counter
from typing import Any, Final

from plugrad.autograd.profiler.chrome_trace import TraceContext
from plugrad.autograd.profiler.event_list import EventList
from plugrad.autograd.profiler.events import FunctionEvent
from plugrad.autograd.profiler.flops import estimate_flops
from plugrad.autograd.profiler.recorder import CALL, EVALUATE, NODE, RANGE, Record, Recorder

EVALUATE_PREFIX: Final = "autograd::engine::evaluate_function: "
# PyTorch's numbers for the kinds of events.
SCOPES: Final = {NODE: 1, RANGE: 7}


def events_of(recorder: Recorder, *, profile_memory: bool, with_flops: bool) -> EventList:
    """All events of a recorder that has stopped, in the order in which they began."""
    records = [record for log in recorder.logs.values() for record in log.records]
    # Sorting is stable: of two that began and ended together, the outer one stays first.
    records.sort(key=lambda record: (record.start, -record.end))
    parents = {record: _parent_of(record) for record in records}
    children = Counter(parents.values())
    events: list[FunctionEvent] = []
    by_record: dict[Record, FunctionEvent] = {}
    for record in records:
        parent = parents[record]
        outer = None if parent is None else by_record[parent]
        if outer is not None and children[parent] == 1 and _repeats(record, parent):
            by_record[record] = outer
            outer.cpu_memory_usage += record.allocated
            outer.kernel = outer.kernel or record.variant
            continue
        event = _event(len(events) + 1, record, recorder.started, with_flops)
        events.append(event)
        by_record[record] = event
        if outer is not None and not record.is_async:
            outer.append_cpu_child(event)
            event.set_cpu_parent(outer)
    _tell_of_forward(by_record)
    _sum_up(events)
    found = EventList(events, profile_memory=profile_memory, with_flops=with_flops)
    found._tree_built = True
    found._context = _context(recorder)
    return found


def _parent_of(record: Record) -> Record | None:
    """What it ran within; a range that overlaps others has nothing in it."""
    parent = record.parent
    while parent is not None and parent.is_async:
        parent = parent.parent
    return parent


def _repeats(record: Record, parent: Record | None) -> bool:
    """Whether an operator calls another overload of its own name."""
    if parent is None or record.kind != CALL or parent.kind != CALL:
        return False
    return _name_of(record) == _name_of(parent)


def _name_of(record: Record) -> str:
    if record.kind == CALL:
        return f"{record.what.namespace}::{record.what.name}"
    return f"{EVALUATE_PREFIX}{record.what}" if record.kind == EVALUATE else str(record.what)


def _event(number: int, record: Record, origin: int, with_flops: bool) -> FunctionEvent:
    is_call = record.kind == CALL
    flops = 0
    if is_call and with_flops:
        flops = estimate_flops(record.what.name, record.shapes, record.result_shape)
    name = _name_of(record)
    return FunctionEvent(
        id=number,
        # The steps of a schedule are one kind of event.
        name="ProfilerStep*" if name.startswith("ProfilerStep#") else name,
        trace_name=name,
        thread=record.log.number,
        start_us=(record.start - origin) / 1000,
        end_us=(record.end - origin) / 1000,
        overload_name=record.what.overload if is_call else "",
        fwd_thread=0,
        input_shapes=[_as_lists(shape) for shape in record.shapes or ()],
        stack=[
            f"{_short_path(code.co_filename)}({line}): {code.co_name}"
            for code, line in record.stack or ()
        ],
        scope=SCOPES.get(record.kind, 0),
        cpu_memory_usage=record.allocated,
        is_async=record.is_async,
        sequence_nr=record.first_nr,
        flops=flops,
        is_user_annotation=record.kind == RANGE,
        kernel=record.variant,
    )


@functools.cache
def _short_path(path: str) -> str:
    """A file's path within the package or folder that it was imported from."""
    folders = [folder.rstrip(os.sep) + os.sep for folder in (*sys.path, os.getcwd()) if folder]
    found = max((folder for folder in folders if path.startswith(folder)), key=len, default="")
    return path[len(found) :]


def _as_lists(shape: Any) -> list[Any]:
    if shape is None:
        return []
    return [list(item) if isinstance(item, tuple) else item for item in shape]


def _tell_of_forward(by_record: dict[Record, FunctionEvent]) -> None:
    """Tie nodes to the calls that made them; what runs in a node has the stack of that call."""
    for record, event in by_record.items():
        if record.forward is not None:
            event.forward_event = by_record[record.forward]
            event.fwd_thread = event.forward_event.thread
            event.stack = event.forward_event.stack
        elif event.cpu_parent is not None and not event.stack:
            event.stack = event.cpu_parent.stack


def _sum_up(events: list[FunctionEvent]) -> None:
    """Bytes of inner events count for the outer one too; operations count only where they run."""
    counted: set[FunctionEvent] = set()
    for event in reversed(events):
        inner = event.cpu_children
        event.cpu_memory_usage += sum(child.cpu_memory_usage for child in inner)
        if any(child in counted for child in inner):
            event.flops = 0
            counted.add(event)
        elif event.flops:
            counted.add(event)


def _context(recorder: Recorder) -> TraceContext:
    threads = {log.number: (log.native_id, log.name) for log in recorder.logs.values()}
    account = recorder.account
    history = [] if account is None else sorted(account.history)
    held = itertools.accumulate(nbytes for _, nbytes in history)
    times = [(time - recorder.started) / 1000 for time, _ in history]
    return TraceContext(threads, list(zip(times, held, strict=True)))
