"""ReadyQueue: nodes that are ready to run, by priority."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from mypy_extensions import i64

from plugrad.autograd.engine.primitives import Bell, Primitives
from plugrad.graph.node import Node

if TYPE_CHECKING:
    from plugrad.autograd.engine.graph_task import GraphTask
    from plugrad.autograd.engine.input_buffer import InputBuffer

# Tasks without a node come before all others: a woken owner should see at once that it is done.
FIRST: Final = (1 << 62) - 1


@final
class NodeTask:
    """A node with its inputs, on behalf of a graph task.

    Without a node it only wakes the thread that takes it; without a graph task, too, that thread
    ends.
    """

    def __init__(
        self, graph_task: GraphTask | None, node: Node | None, inputs: InputBuffer | None
    ) -> None:
        self.graph_task = graph_task
        self.node = node
        self.inputs = inputs
        self.depth: i64 = FIRST if graph_task is None else graph_task.reentrant_depth
        self.sequence_nr: i64 = FIRST if node is None else node._number


def _is_more_urgent(a: NodeTask, b: NodeTask) -> bool:
    """Deeper reentrant calls first, then the node that was made later."""
    if a.depth != b.depth:
        return a.depth > b.depth
    return a.sequence_nr > b.sequence_nr


@final
class ReadyQueue:
    """The most urgent node task, and a binary heap of the others, which is usually empty.

    `push` and `pop` are for a queue that only one thread uses, `put` and `get` for one that `share`
    has made shared. Any number of threads may `put`, one at a time may `get`.

    The heap is written out because `heapq` would compare Python objects.

    Attributes:
        closed: whether no thread takes items any more, until one reopens it.
    """

    def __init__(self) -> None:
        self._first: NodeTask | None = None  # None: the heap is empty, too
        self._heap: list[NodeTask] = []
        self._lock: Any = None
        self._bell: Bell | None = None
        self.closed: bool = False

    def share(self, primitives: Primitives) -> None:
        """From now on other threads may `put`; to be called while none of them does."""
        if self._lock is None:
            self._bell = Bell(primitives)
            self._lock = primitives.lock()

    def put(self, task: NodeTask) -> None:
        """`push`, from any thread."""
        bell = self._bell
        assert bell is not None
        with self._lock:
            self.push(task)
            bell.ring()

    def get(self) -> NodeTask:
        """`pop` for a shared queue; waits for an item."""
        bell = self._bell
        assert bell is not None
        while True:
            with self._lock:
                if self._first is not None:
                    return self.pop()
                bell.prepare()
            bell.wait()

    def close_if_empty(self) -> bool:
        """Close the queue unless it has items; then no thread will `get` from it."""
        with self._lock:
            empty = self._first is None
            if empty:
                self.closed = True
        return empty  # it may have been reopened by now

    def push(self, task: NodeTask) -> None:
        first = self._first
        if first is None:
            self._first = task
        elif _is_more_urgent(task, first):
            self._first = task
            self._push_behind(first)
        else:
            self._push_behind(task)

    def pop(self) -> NodeTask:
        """The most urgent task; IndexError if there is none."""
        first = self._first
        if first is None:
            raise IndexError("pop from an empty queue")
        self._first = self._pop_behind() if self._heap else None
        return first

    def _push_behind(self, task: NodeTask) -> None:
        heap = self._heap
        heap.append(task)
        child: i64 = len(heap) - 1
        while child > 0:
            parent = (child - 1) >> 1
            above = heap[parent]
            if not _is_more_urgent(task, above):
                break
            heap[child] = above
            child = parent
        heap[child] = task

    def _pop_behind(self) -> NodeTask:
        heap = self._heap
        last = heap.pop()
        size: i64 = len(heap)
        if size == 0:
            return last
        top = heap[0]
        hole: i64 = 0
        child: i64 = 1
        while child < size:
            if child + 1 < size and _is_more_urgent(heap[child + 1], heap[child]):
                child += 1
            if not _is_more_urgent(heap[child], last):
                break
            heap[hole] = heap[child]
            hole = child
            child = 2 * hole + 1
        heap[hole] = last
        return top

    def __len__(self) -> int:
        return 0 if self._first is None else len(self._heap) + 1
