"""From a book's logs to events: tuples, with what records leave out."""

from __future__ import annotations

from bisect import bisect_right
from types import CodeType
from typing import Any, Final, final

from plugrad.autograd.journal.book import Book, Log
from plugrad.autograd.journal.kinds import (
    BACK,
    BACKWARD,
    BACKWARD_END,
    BUFFER,
    CALL,
    CAME,
    COUNTS,
    DONE,
    END,
    FREE,
    FUNCTION,
    GRAD,
    HOOK,
    KERNEL,
    LEFT,
    LENGTHS,
    NODE,
    NOTE,
    POP,
    RAN,
    READY,
    RUN,
    SAVED,
    STEP,
    TIMED,
    VALUE,
    WENT,
)

# Time in nanoseconds, the number of the thread, a kind, and what the kind says.
Event = tuple[Any, ...]

# What records become that are events as they are.
_NAMES: Final[dict[int, str]] = {
    STEP: "step",
    BACK: "back",
    KERNEL: "kernel",
    LEFT: "left",
    BACKWARD: "backward",
    BACKWARD_END: "backward_end",
    READY: "ready",
    POP: "pop",
    DONE: "done",
    RUN: "run",
    RAN: "ran",
    HOOK: "hook",
    FREE: "free",
    NOTE: "note",
}


def read(book: Book) -> list[Event]:
    """What was written, in the order of time. By kind, behind time, thread and kind:

    "call" operator, key set, place, values; "function" number, name, place, values; "left" it, whether by an exception;
    "step" operator, key set; "kernel" the variant that computes the innermost step; "back" a step
    ends; "end" of a call: values, the number of the first one's node or -1, or -2 for an exception;
    "node" number, name, number of the Function that made it or -1, label of a leaf or None, shape,
    edges, saved tensors, sequence number; "memory" device, bytes that came or, below 0, went;
    "backward" pass, root; "dependencies" counts; "backward_end" pass;
    "ready" node, pass, device, inputs whose gradients are captured; "pop" node; "done" with it;
    "run"; "ran"; "grad" node, bytes;
    "buffer" node, input, bytes, whether it is a sum, how many are left;
    "hook" node, kind, name; "free" node; "note" what somebody noted.

    A place is a file and a line, or None. A value is a tensor: sizes, dtype, device, name. An edge
    is a node and the number of its input, a saved tensor its name, sizes, dtype,
    bytes and the version at which it was saved.
    """
    events: list[Event] = []
    places = _Places()
    for log in list(book.logs):
        _read_log(log, list(log.fields), places, events)
    events.sort(key=_time_of)
    return events


def _read_log(log: Log, fields: list[Any], places: _Places, events: list[Event]) -> None:
    thread = log.number
    time: int = 0
    values: list[Any] = []
    saved: list[Any] = []
    index = 0
    while index < len(fields):
        kind: int = fields[index]
        record = fields[index + 1 : index + LENGTHS[kind]]
        index += LENGTHS[kind]
        if kind in TIMED:
            time = record[0]
            del record[0]
        if kind == VALUE:
            values.append(tuple(record))
        elif kind == SAVED:
            name, sizes, dtype, version = record
            saved.append((name, sizes, dtype, _bytes(sizes, dtype), version))
        elif kind == CALL:
            op, keyset, code, offset, count = record
            place = places.of(code, offset)
            events.append((time, thread, "call", op, keyset, place, _last(values, count)))
        elif kind == FUNCTION:
            number, name, code, offset, count = record
            place = places.of(code, offset)
            events.append((time, thread, "function", number, name, place, _last(values, count)))
        elif kind == END:
            node, count = record
            events.append((time, thread, "end", _last(values, count), node))
        elif kind == NODE:
            *about, edges, order, count = record
            pairs = [list(edges[at : at + 2]) for at in range(0, len(edges), 2)]
            events.append((time, thread, "node", *about, pairs, _last(saved, count), order))
        elif kind == COUNTS:
            (counts,) = record
            pairs = [counts[at : at + 2] for at in range(0, len(counts), 2)]
            events.append((time, thread, "dependencies", pairs))
        elif kind in (CAME, WENT):
            device, nbytes = record
            events.append((time, thread, "memory", device, nbytes if kind == CAME else -nbytes))
        elif kind == GRAD:
            node, sizes, dtype = record
            events.append((time, thread, "grad", node, _bytes(sizes, dtype)))
        elif kind == BUFFER:
            node, input_nr, sizes, dtype, is_sum, left = record
            nbytes = _bytes(sizes, dtype)
            events.append((time, thread, "buffer", node, input_nr, nbytes, is_sum, left))
        else:
            events.append((time, thread, _NAMES[kind], *record))


def _last(values: list[Any], count: int) -> list[Any]:
    """The last `count` of the values, which are taken away."""
    first = len(values) - count
    found = values[first:]
    del values[first:]
    return found


def _bytes(sizes: tuple[int, ...] | None, dtype: Any) -> int:
    """Those of a tensor's elements, whether they share memory or not; 0 for none."""
    if sizes is None or dtype is None:
        return 0
    count: int = dtype.itemsize
    for size in sizes:
        count *= size
    return count


def _time_of(event: Event) -> int:
    time: int = event[0]
    return time


@final
class _Places:
    """Lines of code objects, from places in their instructions."""

    def __init__(self) -> None:
        self._starts: dict[int, list[int]] = {}
        self._lines: dict[int, list[int | None]] = {}

    def of(self, code: CodeType | None, offset: int) -> tuple[str, int] | None:
        if code is None:
            return None
        starts = self._starts.get(id(code))
        if starts is None:
            ranges = list(code.co_lines())
            starts = [start for start, _, _ in ranges]
            self._starts[id(code)] = starts
            self._lines[id(code)] = [line for _, _, line in ranges]
        line = self._lines[id(code)][bisect_right(starts, offset) - 1]
        return code.co_filename, line or code.co_firstlineno
