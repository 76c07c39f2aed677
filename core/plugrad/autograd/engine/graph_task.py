"""GraphTask: the state of one backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from mypy_extensions import i64

from plugrad.autograd.engine.input_buffer import InputBuffer
from plugrad.autograd.engine.primitives import Primitives
from plugrad.autograd.engine.ready_queue import ReadyQueue
from plugrad.autograd.engine.streams import PassStreams
from plugrad.dispatch.backends.streams import STREAMS
from plugrad.dispatch.local_state import Snapshot
from plugrad.graph.node import Edge, Node
from plugrad.tensor.base import TensorBase

if TYPE_CHECKING:
    from plugrad.autograd.engine.device_thread import DeviceThread


@final
class Capture:
    """A gradient that `autograd.grad` requested: input `input_nr` of a node, as result `index`."""

    def __init__(self, input_nr: i64, index: i64) -> None:
        self.input_nr: i64 = input_nr
        self.index: i64 = index


@final
class ExecInfo:
    """Whether a node must run, and which of its inputs are results; only with `inputs=`."""

    def __init__(self) -> None:
        self.needed: bool = False
        self.captures: list[Capture] | None = None

    def should_execute(self) -> bool:
        return self.needed or self.captures is not None


@final
class GraphTask:
    """One backward pass.

    As long as only the thread that called it works on a pass, nothing here is locked. Before the
    first node goes to another thread, that thread makes the task `shared`; from then on `lock`
    guards every field, and the engine's notes on the nodes that the task owns.

    Attributes:
        outstanding_tasks: node tasks pushed and not yet run; the pass is over when none is left.
        running: how many of them are running now; counted only when shared.
        error: the first one; no other node runs after it.
        failed: the node that it came from, which the owner explains in anomaly mode, or None.
        dependencies, not_ready: counts and inputs of nodes that another pass owns. All other nodes
            store them in `Node.pending` and `Node.buffer`, which saves two dict look-ups per edge.
        exec_info: which nodes matter, if only some do; None means all.
        captured: the requested gradients.
        home: the queue of the owner, which is the thread that waits for the pass.
        worker: the owner, if it is the thread of a device.
        devices: the threads that were given work.
        bound: whether all nodes run on the owner's thread, for a device that is bound to it.
        streams: the streams that the pass uses, if devices have any.
        number: the pass's number; -1 until it is requested.
    """

    def __init__(
        self,
        keep_graph: bool,
        create_graph: bool,
        reentrant_depth: i64,
        snapshot: Snapshot,
        home: ReadyQueue,
    ) -> None:
        self.keep_graph = keep_graph
        self.create_graph = create_graph
        self.reentrant_depth: i64 = reentrant_depth
        self.snapshot = snapshot
        self.home = home
        self.number: i64 = -1
        self.outstanding_tasks: i64 = 0
        self.running: i64 = 0
        self.shared: bool = False
        self.finished: bool = False
        self.lock: Any = None
        self.error: BaseException | None = None
        self.failed: Node | None = None
        self.worker: DeviceThread | None = None
        self.devices: list[DeviceThread] = []
        self.bound: bool = False
        self.streams: PassStreams | None = PassStreams() if STREAMS.active else None
        self.dependencies: dict[Node, int] = {}
        self.not_ready: dict[Node, InputBuffer] = {}
        self.exec_info: dict[Node, ExecInfo] | None = None
        self.captured: list[TensorBase | None] = []
        self.final_callbacks: list[Any] | None = None
        self.root: Node | None = None
        self.nodes: dict[int, Node] | None = None
        self.notes: dict[Any, Any] | None = None
        self.can_checkpoint: bool = True

    def share(self, primitives: Primitives) -> None:
        """Let other threads work on the pass; call it before any of them does."""
        if not self.shared:
            self.lock = primitives.lock()
            self.home.share(primitives)
            self.shared = True

    def is_complete(self) -> bool:
        """Whether the owner need wait no longer; under the lock."""
        if self.finished:
            return True
        # An owner that was interrupted while it passed on a node may have miscounted.
        return self.running == 0 if self.error is not None else self.outstanding_tasks == 0

    def fail(self, error: BaseException) -> None:
        """Record an error; the owner raises the first one. Call it without holding the lock."""
        with self.lock:
            if self.error is None:
                self.error = error

    def wants(self, function: Node) -> bool:
        """Whether a node has to run in this pass."""
        exec_info = self.exec_info
        if exec_info is None:
            return True
        info = exec_info.get(function)
        return info is not None and info.should_execute()

    def will_execute(self, node_id: int) -> bool:
        """Whether the pass runs the node of this id, ran it, or captures a gradient there.

        Raises:
            RuntimeError: it is a leaf's, and a gradient is captured there rather than accumulated.
        """
        nodes = self.nodes
        if nodes is None:
            nodes = _reachable(self.root)
            self.nodes = nodes
        node = nodes.get(node_id)
        if node is None:
            return False
        exec_info = self.exec_info
        if exec_info is None:
            return True
        info = exec_info.get(node)
        if info is None or not info.should_execute():
            return False
        if info.captures is not None and node._edge_count == 0:
            raise RuntimeError(
                "A leaf node was passed to _will_engine_execute_node but we are currently running "
                "autograd.grad(). This is currently not supported."
            )
        return True

    def execution_order(self) -> list[Node]:
        """The nodes that the pass runs, or captures gradients at, in the order it does so."""
        root = self.root
        if root is None:
            return []
        waiting: dict[int, int] = {}
        for node in _reachable(root).values():
            for child in _children(node):
                if child is not None:
                    number = id(child)
                    waiting[number] = waiting.get(number, 0) + 1
        order: list[Node] = []
        ready: list[Node] = [root]
        while ready:
            # As in the engine's queue: the highest number first, among equal ones the earliest.
            node = max(ready, key=_sequence_nr_of)
            ready.remove(node)
            if node._num_inputs() > 0:  # the root of a pass with several roots belongs to no graph
                order.append(node)
            for function in _children(node):
                if function is None:
                    continue
                waiting[id(function)] -= 1
                if waiting[id(function)] == 0 and self.wants(function):
                    ready.append(function)
        return order

    def capture(self, info: ExecInfo, grads: list[TensorBase | None]) -> None:
        """Keep those inputs of a node that were requested."""
        if info.captures is not None:
            for capture in info.captures:
                self.captured[capture.index] = grads[capture.input_nr]

    def add_to_dicts(
        self,
        function: Node,
        input_nr: i64,
        grad: TensorBase | None,
        producer: DeviceThread | None = None,
    ) -> InputBuffer | None:
        """Add a gradient to the inputs of a node that another pass holds; they are returned when
        they are complete."""
        waiting = self.not_ready.get(function)
        if waiting is None:
            waiting = InputBuffer(function._num_inputs())
            self.not_ready[function] = waiting
        trace = self.snapshot.trace
        if trace is not None:
            is_sum = grad is not None and waiting.values[input_nr] is not None
            waits_for = self.dependencies[function]
            trace.arrive(self, function, int(input_nr), grad, is_sum, waits_for - 1)
        if self.streams is None:
            waiting.add_in_order(input_nr, grad, self.create_graph, trace, producer)
        else:
            waiting.add_on_streams(input_nr, grad, self.create_graph, trace, producer, function)
        left = self.dependencies[function] - 1
        self.dependencies[function] = left
        if left > 0:
            return None
        del self.not_ready[function]
        return waiting

    def compute_dependencies(self, root: Node, min_topological_nr: i64) -> None:
        """Count, for every node that can be reached, the edges that lead to it."""
        shared = False
        stack: list[Node] = [root]
        while stack:
            node = stack.pop()
            if node._topological_nr < min_topological_nr:
                continue
            count: i64 = node._edge_count
            index: i64 = 0
            while index < count:
                function = node._edge_node(index)
                index += 1
                if function is None:
                    continue
                owner = function._owner
                if owner is self:
                    function._pending += 1
                elif (owner is None or _is_finished(owner)) and not (
                    # The other pass may released a node while its edges are being counted here.
                    shared and function in self.dependencies
                ):
                    function._owner = self
                    function._pending = 1
                    function._buffer = None
                    stack.append(function)
                else:
                    shared = True
                    known = self.dependencies.get(function)
                    if known is None:
                        stack.append(function)
                        known = 0
                    self.dependencies[function] = known + 1

    def init_to_execute(
        self, root: Node, outputs: list[Edge], accumulate_grad: bool, min_topological_nr: i64
    ) -> None:
        """Mark the nodes on a path from the root to one of `outputs`: only they have to run."""
        exec_info: dict[Node, ExecInfo] = {}
        self.exec_info = exec_info
        for index, edge in enumerate(outputs):
            function = edge.function
            if function is None:
                continue
            info = exec_info.get(function)
            if info is None:
                info = ExecInfo()
                exec_info[function] = info
            if accumulate_grad:
                info.needed = True
            else:
                if info.captures is None:
                    info.captures = []
                info.captures.append(Capture(edge.input_nr, index))
        _mark_needed(exec_info, root, min_topological_nr)

    def close(self) -> None:
        """End the pass, with or without an error: release its state.

        Nodes may still name it as their owner, so it must not refer back to them.
        """
        try:
            if self.shared:
                with self.lock:  # an owner that was interrupted twice leaves other threads behind
                    self.finished = True
        finally:
            self.finished = True
        self.error = None
        self.failed = None
        self.exec_info = None
        self.captured = []
        self.dependencies = {}
        self.not_ready = {}
        self.final_callbacks = None
        self.devices = []
        self.streams = None
        self.root = None
        self.nodes = None
        self.notes = None


def _sequence_nr_of(node: Node) -> int:
    return node._number


def _is_finished(owner: object) -> bool:
    return isinstance(owner, GraphTask) and owner.finished


def _reachable(root: Node | None) -> dict[int, Node]:
    """All nodes that there is a way to, by id."""
    found: dict[int, Node] = {}
    stack: list[Node] = [] if root is None else [root]
    while stack:
        node = stack.pop()
        if id(node) in found:
            continue
        found[id(node)] = node
        stack.extend([child for child in _children(node) if child is not None])
    return found


def _children(node: Node) -> list[Node | None]:
    """The nodes that a node's edges lead to."""
    return [node._edge_node(index) for index in range(node._edge_count)]


@final
class _Frame:
    def __init__(self, node: Node) -> None:
        self.node = node
        self.next_child: i64 = 0


def _mark_needed(exec_info: dict[Node, ExecInfo], root: Node, min_topological_nr: i64) -> None:
    """Depth first without recursion: a node is needed if a child has to be executed."""
    seen: set[Node] = {root}
    stack: list[_Frame] = [_Frame(root)]
    while stack:
        frame = stack[-1]
        node = frame.node
        count: i64 = node._edge_count
        pushed = False
        while frame.next_child < count:
            child = node._edge_node(frame.next_child)
            frame.next_child += 1
            if child is None or child in seen or child._topological_nr < min_topological_nr:
                continue
            seen.add(child)
            stack.append(_Frame(child))
            pushed = True
            break
        if pushed:
            continue
        stack.pop()
        for index in range(count):
            function = node._edge_node(index)
            if function is None:
                continue
            below = exec_info.get(function)
            if below is not None and below.should_execute():
                info = exec_info.get(node)
                if info is None:
                    info = ExecInfo()
                    exec_info[node] = info
                info.needed = True
                break
