"""Recorder: the listener that a profiler installs; keeps a record of every call, node and range.

Only calls are recorded, not what they redispatch to: a kernel above the backends, the one below it
and the raw kernel are one event. A call that an operator makes is a child of the operator's.
"""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING, Any, Final, final

from mypy_extensions import i64

from plugrad.autograd.profiler.memory import MemoryAccount
from plugrad.dispatch.caller import caller_outside_plugrad
from plugrad.dispatch.listener import Trace
from plugrad.dispatch.local_state import current_state
from plugrad.graph.node import MAX_SEQUENCE_NR, Node, name_of
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad.dispatch.operator import Operator

# Kinds of records.
CALL: Final = 0
EVALUATE: Final = 1
NODE: Final = 2
RANGE: Final = 3
MEMORY: Final = 4
FUNCTION: Final = 5


@final
class ThreadLog:
    """What one thread did, in the order in which it began.

    Attributes:
        number: 1 for the thread that the recorder saw first, and so on.
        top: the innermost record that has not ended.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.native_id: int = threading.get_native_id()
        self.name: str = threading.current_thread().name
        self.records: list[Record] = []
        self.top: Record | None = None


@final
class Record:
    """One event.

    Attributes:
        what: the operator, or the name of the node, Function or range.
        start, end: nanoseconds of `time.perf_counter_ns`; `end` is 0 while it lasts.
        first_nr, end_nr: the range of sequence numbers of nodes made in it, empty if equal. For a
            node, its own.
        forward: the call in which this node was made.
        shapes: one entry per argument, and `result_shape` the result's shape, if requested.
        stack: pairs of code and line number, innermost first, if requested.
        allocated: bytes allocated less bytes freed, without its children's.
        variant: the package and name of the kernel variant that computed the call; empty for none.
        is_async: whether something else lasts longer that began within, or it ended on another
            thread than it began.
    """

    def __init__(self, kind: i64, what: Any, log: ThreadLog) -> None:
        self.kind: i64 = kind
        self.what: Any = what
        self.log = log
        self.parent: Record | None = log.top
        self.start: i64 = 0
        self.end: i64 = 0
        self.first_nr: i64 = -1
        self.end_nr: i64 = -1
        self.forward: Record | None = None
        self.shapes: list[Any] | None = None
        self.result_shape: tuple[int, ...] | None = None
        self.stack: list[tuple[Any, int]] | None = None
        self.allocated: i64 = 0
        self.variant: str = ""
        self.is_async: bool = False


def _now() -> i64:
    nanoseconds: int = time.perf_counter_ns()
    return nanoseconds


@final
class Recorder(Trace):
    """Records what happens on the threads it is installed on."""

    def __init__(
        self, outer: Trace | None, with_shapes: bool, with_memory: bool, with_stack: bool
    ) -> None:
        super().__init__(outer)
        self.with_shapes = with_shapes
        self.with_stack = with_stack
        self.logs: dict[int, ThreadLog] = {}
        self.numbers = itertools.count(1)
        # Which call made the nodes: by their identity as long as numbers agree; by their number
        # alone (None: several threads gave it out) for those that no result led to.
        self.makers: dict[int, Record] = {}
        self.by_number: dict[int, Record | None] = {}
        self.open_ranges: dict[int, Record] = {}
        self.account = MemoryAccount(self._note_bytes) if with_memory else None
        self.started: i64 = _now()
        self.stopped: i64 = 0

    def stop(self) -> None:
        """End open events, and stop watching arrays."""
        self.stopped = _now()
        if self.account is not None:
            self.account.close()
        self.open_ranges = {}
        self.makers = {}
        self.by_number = {}
        for log in self.logs.values():
            for record in log.records:
                if record.end == 0:
                    record.end = self.stopped

    def _log(self) -> ThreadLog:
        thread = threading.get_ident()
        log = self.logs.get(thread)
        if log is None:
            log = ThreadLog(next(self.numbers))
            self.logs[thread] = log
        return log

    def _begin(self, record: Record) -> None:
        log = record.log
        log.records.append(record)
        log.top = record
        record.start = _now()

    def _end(self, record: Record) -> None:
        record.end = _now()
        record.log.top = record.parent

    def dispatch(self, kind: str, op: Operator, keyset: i64, args: tuple[object, ...]) -> Any:
        if kind != "call":
            return super().dispatch(kind, op, keyset, args)
        state = current_state()
        record = Record(CALL, op, self._log())
        if self.with_shapes:
            record.shapes = _shapes_of(args)
        if self.with_stack:
            record.stack = _stack(record.parent)
        first_nr = state.sequence_nr
        self._begin(record)
        try:
            result = super().dispatch(kind, op, keyset, args)
        finally:
            self._end(record)
            if state.sequence_nr > first_nr:
                record.first_nr = first_nr
                record.end_nr = state.sequence_nr
        if record.end_nr > first_nr:
            self._note_result(record, result)
            self._note_numbers(record)
        if self.with_shapes and isinstance(result, TensorBase):
            record.result_shape = sizes_of(result)
        if self.account is not None:
            self.account.results(record, result, args)
        return result

    def choose(self, operator: str, kernel: str) -> None:
        top = self._log().top
        if top is not None and top.kind == CALL and top.what.qualified_name == operator:
            top.variant = kernel
        super().choose(operator, kernel)

    def _note_result(self, record: Record, result: Any) -> None:
        if isinstance(result, TensorBase):
            meta = result._autograd_meta
            if meta is not None and meta.grad_fn is not None:
                key = id(meta.grad_fn)
                known = self.makers.get(key)
                # Inner calls end first, and their record is more precise.
                if known is None or not _covers(known, meta.grad_fn._number):
                    self.makers[key] = record

    def _note_numbers(self, record: Record) -> None:
        number = record.first_nr
        while number < record.end_nr:
            if number not in self.by_number:
                self.by_number[number] = record
            else:
                other = self.by_number[number]
                if other is not None and other.log is not record.log:
                    self.by_number[number] = None
            number += 1

    def _maker_of(self, node: Node) -> Record | None:
        number = node._number
        maker = self.makers.get(id(node))
        if maker is not None and _covers(maker, number):
            return maker
        # The roots of a pass have no inputs, and no number worth looking up.
        return None if node._num_inputs() == 0 else self.by_number.get(number)

    def enter_node(self, node: Node) -> None:
        record = Record(EVALUATE, name_of(node), self._log())
        self._link(record, node)
        self._begin(record)
        super().enter_node(node)

    def leave_node(self, node: Node) -> None:
        super().leave_node(node)
        top = self._log().top
        # A recorder that started within the node has no record of its begin.
        if top is not None and top.kind == EVALUATE:
            self._end(top)

    def run_node(self, node: Node, grads: Any) -> Any:
        record = Record(NODE, name_of(node), self._log())
        if self.with_shapes:
            record.shapes = _shapes_of(grads)
        self._link(record, node)
        self._begin(record)
        try:
            return super().run_node(node, grads)
        finally:
            self._end(record)

    def _link(self, record: Record, node: Node) -> None:
        if node._num_inputs() > 0 and node._number < MAX_SEQUENCE_NR:
            record.first_nr = node._number
        record.forward = self._maker_of(node)

    def enter_function(
        self, ctx: Node, name: str, inputs: tuple[object, ...], recorded: bool
    ) -> None:
        record = Record(FUNCTION, name, self._log())
        if self.with_shapes:
            record.shapes = _shapes_of(inputs)
        if self.with_stack:
            record.stack = _stack(record.parent)
        if recorded:
            record.first_nr = ctx._number
            record.end_nr = record.first_nr + 1
            self._note_numbers(record)
        self._begin(record)
        super().enter_function(ctx, name, inputs, recorded)

    def leave_function(self, ctx: Node, raised: bool) -> None:
        super().leave_function(ctx, raised)
        top = self._log().top
        # A recorder that started within the function has no record of its begin.
        if top is not None and top.kind == FUNCTION:
            self._end(top)

    def enter_range(self, key: object, label: str, inputs: tuple[object, ...]) -> None:
        record = Record(RANGE, label, self._log())
        if self.with_shapes and inputs:
            record.shapes = _shapes_of(inputs)
        if self.with_stack:
            record.stack = _stack(record.parent)
        self.open_ranges[id(key)] = record
        self._begin(record)
        super().enter_range(key, label, inputs)

    def leave_range(self, key: object) -> None:
        super().leave_range(key)
        record = self.open_ranges.pop(id(key), None)
        if record is None:
            return  # it began before the profiler did
        record.end = _now()
        log = record.log
        record.is_async = log is not self._log()
        if log.top is record:
            log.top = record.parent
            return
        # Ranges may overlap: those within that still last move up.
        inner = log.top
        while inner is not None:
            if inner.parent is record:
                inner.parent = record.parent
                record.is_async = True
                return
            inner = inner.parent

    def _note_bytes(self, record: Record | None, nbytes: int) -> None:
        """A call allocated `nbytes` (or, if negative, freed them); None: whatever this thread is
        doing."""
        if record is None:
            log = self._log()
            record = log.top
            if record is None:
                record = Record(MEMORY, "[memory]", log)
                record.start = _now()
                record.end = record.start
                log.records.append(record)
        record.allocated += nbytes


def _covers(record: Record, number: i64) -> bool:
    return record.first_nr <= number < record.end_nr


def _shapes_of(values: Any) -> list[Any]:
    """The shape of each tensor, a list of shapes for a list of tensors, None for anything else."""
    shapes: list[Any] = []
    for value in values:
        if isinstance(value, TensorBase):
            shapes.append(sizes_of(value))
        elif isinstance(value, (list, tuple)):
            shapes.append([sizes_of(item) for item in value if isinstance(item, TensorBase)])
        else:
            shapes.append(None)
    return shapes


def _stack(parent: Record | None) -> list[tuple[Any, int]] | None:
    """The user's frames. Calls within an operator have its stack; backward nodes have the forward
    call's."""
    outer = parent
    while outer is not None:
        if outer.kind == NODE:
            return None
        outer = outer.parent
    if parent is not None and parent.kind == CALL:
        return parent.stack
    frames: list[tuple[Any, int]] = []
    frame = caller_outside_plugrad()
    while frame is not None:
        frames.append((frame.f_code, frame.f_lineno or 0))
        frame = frame.f_back
    return frames


def is_recording() -> bool:
    """Whether the calling thread is being profiled.

    >>> from plugrad.autograd.profiler import is_recording, profile
    >>> with profile():
    ...     is_recording()
    True
    >>> is_recording()
    False
    """
    trace = current_state().trace
    while trace is not None:
        if isinstance(trace, Recorder):
            return True
        trace = trace.outer
    return False
