"""What the journals of one recording share: a log for each thread, and numbers for nodes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final, final

from mypy_extensions import i64

from plugrad._intrinsics import log0, log1, log4, new_log
from plugrad.autograd.inspection import saving_names
from plugrad.autograd.journal.arrays import Arrays
from plugrad.autograd.journal.kinds import NODE, NOTE, SAVED, VALUE, WENT
from plugrad.autograd.variable.accumulate_grad import AccumulateGradBase
from plugrad.dispatch.local_state import LocalState, current_state
from plugrad.graph.node import Node, name_of
from plugrad.graph.saved_variable import SavedVariable
from plugrad.tensor.base import TensorBase, sizes_of

frame_at: Final[Any] = sys._getframe

# A weak reference to a tensor, and its name: by the tensor's identity.
TensorNames = dict[int, tuple[Any, str]]

_stamp_names: Final[dict[str, str]] = {}


@final
class Log:
    """What one thread did.

    Attributes:
        records: a log of records; see `kinds`.
        floor: the frame that was the innermost when the node that runs began: those below it did
            not call what the node calls.
    """

    def __init__(self, number: int, state: LocalState | None) -> None:
        self.number = number
        self.name: str = threading.current_thread().name
        self.records: Any = new_log()
        self.floor: Any = None
        # Identifies the thread; its number does not, because another thread can reuse it.
        self.state: LocalState | None = state


@final
class Book:
    """The log of each thread, into which journals write. `read` turns them into events.

    Nodes and tensors are not kept alive.

    Args:
        limit: the number of events after which writing stops.
        names: names of tensors, by their identity, each behind a weak reference to the tensor.
        label: called with a leaf that is seen for the first time, and with the program's frame or
            None; returns the leaf's name.
        is_library: whether a frame's code belongs to a library rather than to the program.

    Attributes:
        closed: whether nothing more is written.
        key: the key of a node's number among its notes; `maker` the key of a custom Function's.
        passes: numbers of the passes that run, by the identity of their task.

    >>> import plugrad
    >>> from plugrad.plugins.watching import Book, Journal, read, watching
    >>> book = Book(1000, {}, lambda leaf, frame: "", lambda frame: False)
    >>> x = plugrad.ones(2)
    >>> with watching(Journal(book)):
    ...     y = x.exp()
    >>> book.close()
    >>> [event[3].name for event in read(book) if event[2] == "call"]
    ['exp']
    """

    def __init__(
        self,
        limit: int,
        names: TensorNames,
        label: Callable[[Any, FrameType | None], str],
        is_library: Callable[[FrameType], bool],
    ) -> None:
        self.limit: i64 = limit
        self.names = names
        self.label = label
        self.is_library = is_library
        self.closed: bool = False
        self.count: i64 = 0
        self.key = object()
        self.maker = object()
        self.nodes: int = 0
        self.functions: int = 0
        self.pass_count: int = 0
        self.passes: dict[int, int] = {}
        self.arrays = Arrays(self)
        self.logs: list[Log] = []
        self._notes: list[object] = []
        self._by_state: dict[int, Log] = {}
        # By id; the code is kept so that no other code gets the same id.
        self._codes: dict[int, tuple[CodeType, bool]] = {}
        self._last: Log = self._add_log(current_state())

    def close(self) -> None:
        """Stop writing, and release everything that belongs to the program."""
        self.closed = True
        self.arrays.close()
        self.passes = {}
        for log in self.logs:
            log.state = None
            log.floor = None

    def log(self) -> Log:
        """The log of the calling thread."""
        state = current_state()
        log = self._last
        if log.state is state:
            return log
        found = self._by_state.get(id(state))
        if found is None:
            found = self._add_log(state)
        self._last = found
        return found

    def _add_log(self, state: LocalState) -> Log:
        log = Log(len(self.logs), state)
        self.logs.append(log)
        self._by_state[id(state)] = log
        return log

    def note_gone(self, device: Any, nbytes: int) -> None:
        """Record that an array was freed; any thread may call this, even one that is not
        recorded."""
        if self.closed:
            return
        state = current_state()
        log = self._last
        if log.state is not state:
            log = self._by_state.get(id(state), log)
        self.count += 1
        log1(log.records, WENT, nbytes, 0, device)

    @property
    def threads(self) -> list[str]:
        """The names of the threads, by their numbers in events."""
        return [log.name for log in self.logs]

    def note(self, what: object) -> None:
        """Write any object as an event "note" of the calling thread."""
        if not self.closed:
            self.count += 1
            self._notes.append(what)
            log0(self.log().records, NOTE, len(self._notes) - 1, 0)

    def noted(self, place: int) -> object:
        """What was noted, by its place."""
        return self._notes[place]

    def see(self, node: Node) -> None:
        """Write a node and everything that it leads to, unless it is written already."""
        self.number(node, self.log().records)

    # Where a call comes from.

    def program_frame(self, floor: Any) -> Any:
        """The innermost frame of the program above `floor`, or None."""
        frame: Any = frame_at(0)
        known = self._codes
        while frame is not None and frame is not floor:
            code = frame.f_code
            found = known.get(id(code))
            if found is None:
                found = (code, self.is_library(frame))
                known[id(code)] = found
            if not found[1]:
                return frame
            frame = frame.f_back
        return None

    # Tensors.

    def note_values(self, values: Any, records: Any) -> int:
        """Write down the tensors among values, and those in lists; returns how many there are."""
        count = 0
        for value in values:
            if isinstance(value, TensorBase):
                self.note_value(value, records)
                count += 1
            elif isinstance(value, (list, tuple)):
                for each in value:
                    if isinstance(each, TensorBase):
                        self.note_value(each, records)
                        count += 1
        return count

    def note_value(self, tensor: TensorBase, records: Any) -> None:
        """Write down what a tensor looks like, and its name."""
        name = ""
        if self.names:
            known = self.names.get(id(tensor))
            if known is not None and known[0]() is tensor:
                name = known[1]
        log4(records, VALUE, 0, 0, 0, 0, sizes_of(tensor), tensor.dtype, tensor.device, name)

    # Nodes.

    def number(self, node: Node, records: Any) -> int:
        """A node's number. One that is new is written down."""
        notes = node._extra
        if notes is not None:
            number: int | None = notes.get(self.key)
            if number is not None:
                return number
        return self.add_node(node, None, records)

    def add_node(self, node: Node, frame: Any, records: Any) -> int:
        """Number a node, and write it down behind those it leads to that have no number."""
        number = self._assign(node)
        found: list[tuple[Node, int]] = [(node, number)]
        index = 0
        while index < len(found):  # a node may have very many behind it
            each = found[index][0]
            for place in range(each._edge_count):
                function = each._edge_node(place)
                if function is not None and self._number_of(function) < 0:
                    found.append((function, self._assign(function)))
            index += 1
        while index > 0:
            index -= 1
            self._write(found[index][0], found[index][1], frame, records)
        return number

    def _assign(self, node: Node) -> int:
        number = self.nodes
        self.nodes = number + 1
        notes = node._extra
        if notes is None:
            node._extra = {self.key: number}
        else:
            notes[self.key] = number
        return number

    def _number_of(self, node: Node) -> int:
        notes = node._extra
        if notes is None:
            return -1
        number: int = notes.get(self.key, -1)
        return number

    def _write(self, node: Node, number: int, frame: Any, records: Any) -> None:
        self.count += 1
        if node._edge_count == 0 and isinstance(node, AccumulateGradBase):
            leaf = node.variable
            label = self.label(leaf, frame)
            order = node._number
            sizes = sizes_of(leaf)
            log4(records, NODE, number, -1, order, 0, name_of(node), label, sizes, ())
            return
        edges: list[int] = []
        for place in range(node._edge_count):
            function = node._edge_node(place)
            if function is not None:
                edges.append(self._number_of(function))
                edges.append(int(node._edge_nr(place)))
        saved = _write_saved(node, records)
        shape: tuple[int, ...] = ()
        metadata = node._metadata_of_input(0) if node._num_inputs() > 0 else None
        if metadata is not None:
            shape = metadata.shape
        notes = node._extra
        maker: int = -1 if notes is None or len(notes) == 1 else notes.get(self.maker, -1)
        order = node._number
        log4(records, NODE, number, maker, order, saved, name_of(node), None, shape, tuple(edges))


def _write_saved(node: Node, records: Any) -> int:
    """Write down what a node has saved; nothing is unpacked. Returns how many tensors there are."""
    count = 0
    for field, name in saving_names(node):
        kept: Any = getattr(node, field, None)
        if kept is None:
            continue
        if isinstance(kept, TensorBase):
            stamp: int = getattr(node, _stamp_name(name), 0)
            log4(records, SAVED, stamp >> 1, 0, 0, 0, name, sizes_of(kept), kept.dtype, None)
            count += 1
        elif isinstance(kept, SavedVariable):
            _write_variable(name, kept, records)
            count += 1
        elif isinstance(kept, list):
            for index, item in enumerate(kept):
                if isinstance(item, SavedVariable):
                    _write_variable(f"{name}[{index}]", item, records)
                    count += 1
    return count


def _stamp_name(name: str) -> str:
    """The field of a node that has the version of a saved tensor, above its lowest bit.

    Interned: Python then remembers for each class whether it has the field."""
    found = _stamp_names.get(name)
    if found is None:
        found = sys.intern(f"stamp_{name}")
        _stamp_names[name] = found
    return found


def _write_variable(name: str, saved: SavedVariable, records: Any) -> None:
    """Something saved: a tensor, or what a pack hook returned for it."""
    raw: Any = saved.raw()
    version = int(saved.saved_version)
    if isinstance(raw, TensorBase):
        log4(records, SAVED, version, 0, 0, 0, name, sizes_of(raw), raw.dtype, None)
    else:
        log4(records, SAVED, version, 0, 0, 0, name, (), None, None)
