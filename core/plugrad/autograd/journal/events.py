"""From a book's logs to events: tuples, with what records leave out."""

from __future__ import annotations

from bisect import bisect_right
from types import CodeType
from typing import Any, Final, final

from plugrad._intrinsics import FIRST_TIMED, logged
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
    NODE,
    POP,
    RAN,
    READY,
    RETURNED,
    RUN,
    SAVED,
    STEP,
    VALUE,
    WENT,
)
from plugrad.graph.node import HIGHEST_SEQUENCE_NR, MAX_SEQUENCE_NR

# Time in nanoseconds, the number of the thread, a kind, and the kind's data.
Event = tuple[Any, ...]

# Events that equal their records: the name, and how many of the numbers count.
_NUMBERS_ONLY: Final[dict[int, tuple[str, int]]] = {
    BACK: ("back", 0),
    BACKWARD: ("backward", 2),
    BACKWARD_END: ("backward_end", 1),
    POP: ("pop", 1),
    DONE: ("done", 0),
    RUN: ("run", 1),
    RAN: ("ran", 1),
    FREE: ("free", 1),
}


def read(book: Book) -> list[Event]:
    """The events, in order of time. After time, thread and kind, an event holds, by kind:

    "call" operator, key set, place, values; "function" number, name, place, values;
    "left" it, whether by an exception; "step" operator, key set; "kernel" the variant that
    computes the innermost step; "back" a step ends; "end" of a call: values, the number of the
    first one's node or -1, or -2 for an exception;
    "node" number, name, number of the Function that made it or -1, label of a leaf or None, shape,
    edges, saved tensors, sequence number; "memory" device, bytes allocated or, if negative, freed;
    "backward" pass, root; "dependencies" counts; "backward_end" pass;
    "ready" node, pass, device, inputs whose gradients are captured; "pop" node; "done" with it;
    "run"; "ran"; "grad" node, bytes;
    "buffer" node, input, bytes, whether it is a sum, how many are left;
    "hook" node, kind, name; "free" node; "note" the object that was noted.

    A place is a file and a line, or None. A value is a tensor: sizes, dtype, device, name. An edge
    is a node and the number of its input, a saved tensor its name, sizes, dtype,
    bytes and the version at which it was saved.
    """
    events: list[Event] = []
    places = _Places()
    for log in list(book.logs):
        _Reader(book, log, places).read(events)
    events.sort(key=_time_of)
    return events


@final
class _Reader:
    """Makes events of the records of one log."""

    def __init__(self, book: Book, log: Log, places: _Places) -> None:
        self._book = book
        self._log = log
        self._places = places
        # What belongs to a record that is still to come.
        self._values: list[Any] = []
        self._saved: list[Any] = []

    def read(self, events: list[Event]) -> None:
        thread = self._log.number
        time: int = 0
        for record in logged(self._log.records):
            kind: int = record[0]
            if kind >= FIRST_TIMED:
                time = record[1]
            if kind == VALUE:
                self._values.append(record[6:])
            elif kind == SAVED:
                version, _, _, _, name, sizes, dtype, _ = record[2:]
                self._saved.append((name, sizes, dtype, _bytes(sizes, dtype), version))
            elif kind in _NUMBERS_ONLY:
                name, count = _NUMBERS_ONLY[kind]
                events.append((time, thread, name, *record[2 : 2 + count]))
            elif kind != RETURNED:
                about = self._of_program(kind, record[2:]) or self._of_backward(kind, record[2:])
                events.append((time, thread, *about))

    def _of_program(self, kind: int, about: tuple[Any, ...]) -> tuple[Any, ...]:
        if kind == CALL:
            keyset, offset, count, _, op, code = about
            return "call", op, keyset, self._places.of(code, offset), _last(self._values, count)
        if kind == STEP:
            keyset, _, op = about
            return "step", op, keyset
        if kind == KERNEL:
            return "kernel", about[2]
        if kind == END:
            node, count = about
            return "end", _last(self._values, count), node
        if kind == NODE:
            number, maker, order, count, name, label, shape, edges = about
            pairs = [list(edges[at : at + 2]) for at in range(0, len(edges), 2)]
            if order == MAX_SEQUENCE_NR:
                order = HIGHEST_SEQUENCE_NR
            return (
                "node",
                number,
                name,
                maker,
                label,
                shape,
                pairs,
                _last(self._saved, count),
                order,
            )
        if kind in (CAME, WENT):
            nbytes, _, device = about
            return "memory", device, nbytes if kind == CAME else -nbytes
        if kind == FUNCTION:
            number, offset, count, _, name, code = about
            place = self._places.of(code, offset)
            return "function", number, name, place, _last(self._values, count)
        if kind == LEFT:
            return "left", about[0] != 0
        return ()

    def _of_backward(self, kind: int, about: tuple[Any, ...]) -> tuple[Any, ...]:
        if kind == BUFFER:
            node, input_nr, is_sum, left, sizes, dtype = about
            return "buffer", node, input_nr, _bytes(sizes, dtype), is_sum != 0, left
        if kind == READY:
            node, number, _, _, device, captured = about
            return "ready", node, number, device, captured
        if kind == GRAD:
            node, _, _, _, sizes, dtype = about
            return "grad", node, _bytes(sizes, dtype)
        if kind == COUNTS:
            counts = about[2]
            return "dependencies", [counts[at : at + 2] for at in range(0, len(counts), 2)]
        if kind == HOOK:
            node, _, _, _, hook, name = about
            return "hook", node, hook, name
        return "note", self._book.noted(about[0])


def _last(values: list[Any], count: int) -> list[Any]:
    """The last `count` of the values, which are taken away."""
    first = len(values) - count
    found = values[first:]
    del values[first:]
    return found


def _bytes(sizes: tuple[int, ...] | None, dtype: Any) -> int:
    """The bytes of a tensor's elements, whether they share memory or not; 0 for none."""
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
