"""ReadyQueue: nodes that may run, the most urgent first."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from mypy_extensions import i64, mypyc_attr

from plugrad.graph.node import Node

if TYPE_CHECKING:
    from plugrad.autograd.engine.graph_task import GraphTask
    from plugrad.autograd.engine.input_buffer import InputBuffer


@mypyc_attr(free_list_len=1)
@final
class NodeTask:
    """A node with its inputs, on behalf of a graph task; a node of None wakes the owner."""

    def __init__(self, graph_task: GraphTask, node: Node | None, inputs: InputBuffer) -> None:
        self.graph_task = graph_task
        self.node = node
        self.inputs = inputs
        self.depth: i64 = graph_task.reentrant_depth
        self.sequence_nr: i64 = 0 if node is None else node.sequence_nr


def _is_more_urgent(a: NodeTask, b: NodeTask) -> bool:
    """Deeper reentrant calls first, then the node that was made later."""
    if a.depth != b.depth:
        return a.depth > b.depth
    return a.sequence_nr > b.sequence_nr


@final
class ReadyQueue:
    """A binary heap of node tasks, used by one thread.

    Written out rather than taken from `heapq`, whose comparisons would go through Python objects.
    """

    def __init__(self) -> None:
        self._heap: list[NodeTask] = []

    def push(self, task: NodeTask) -> None:
        task.graph_task.outstanding_tasks += 1
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

    def pop(self) -> NodeTask:
        """The most urgent task; IndexError if there is none."""
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
        return len(self._heap)
