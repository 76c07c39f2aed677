"""The engine: runs a graph of nodes backwards, without recursion.

A node runs when all gradients that flow into it have arrived. `compute_dependencies` counts them;
`evaluate_function` runs a node, hands its outputs on, and queues those nodes that are complete.
"""

from __future__ import annotations

import threading
from typing import Any, Final, final

from mypy_extensions import i64

from plugrad._generated.calls import call_add_Tensor, call_clone
from plugrad.autograd.accumulate_grad import AccumulateGradBase, run_tensor_hooks
from plugrad.autograd.engine.graph_task import GraphTask
from plugrad.autograd.engine.input_buffer import InputBuffer
from plugrad.autograd.engine.ready_queue import NodeTask, ReadyQueue
from plugrad.autograd.engine.validate import fit_gradient, validate_outputs
from plugrad.device import Device
from plugrad.dispatch.local_state import Snapshot, current_state
from plugrad.graph.node import Edge, Node, NodeHooks
from plugrad.tensor.base import TensorBase, materialize_meta, sizes_of


@final
class GraphRoot(Node):
    """Where a pass with several roots starts: hands each its gradient."""

    def __init__(self, edges: tuple[Edge, ...], grads: list[TensorBase | None]) -> None:
        super().__init__(0)
        self.grads = grads
        self.set_next_edges(edges)

    def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:
        return list(self.grads)


@final
class Identity(Node):
    """Passes a gradient through; stands in for a tensor that the graph does not know."""

    def __init__(self) -> None:
        super().__init__(0)

    def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:
        return grads


class _Observers:
    """Who is told when a pass begins and ends; the plugin floor fills it in."""

    def __init__(self) -> None:
        self.begin: list[Any] = []
        self.end: list[Any] = []


_observers: Final = _Observers()
_thread: Final[Any] = threading.local()


def observe_backward(begin: Any, end: Any) -> None:
    """Call `begin()` before and `end()` after every pass of the engine."""
    _observers.begin.append(begin)
    _observers.end.append(end)


@final
class Engine:
    """Runs graph tasks. There is one, `ENGINE`, for all threads."""

    def __init__(self) -> None:
        # Claiming nodes for a pass is one step: two passes may share nodes.
        self._claims = threading.Lock()

    def execute(
        self,
        roots: tuple[Edge, ...],
        grads: list[TensorBase | None],
        keep_graph: bool,
        create_graph: bool,
        accumulate_grad: bool,
        outputs: list[Edge],
    ) -> list[TensorBase | None]:
        """One backward pass from `roots` with the gradients `grads`.

        Args:
            keep_graph: keep saved tensors, so that the graph can run again.
            create_graph: record the gradients' own computation.
            accumulate_grad: add to leaves' `.grad`; else return the gradients of `outputs`.
            outputs: the edges whose gradients are wanted; empty for all leaves.
        """
        _validate_roots(roots, grads)
        state = current_state()
        depth = _reentrant_depth()
        task = GraphTask(keep_graph, create_graph, depth, Snapshot(state))
        single = len(roots) == 1
        first = roots[0].function
        assert first is not None
        root: Node = first if single else GraphRoot(roots, grads)
        min_topological_nr = _min_topological_nr(outputs)
        with self._claims:
            task.compute_dependencies(root, min_topological_nr)
        if outputs:
            task.init_to_execute(root, outputs, accumulate_grad, min_topological_nr)
            if not accumulate_grad:
                task.captured = [None] * len(outputs)
        buffer = InputBuffer(root.num_inputs() if single else 0)
        if single:
            buffer.add(roots[0].input_nr, grads[0])
        queue = ReadyQueue()
        queue.push(NodeTask(task, root, buffer))
        for begin in _observers.begin:
            begin()
        grad_enabled = state.grad_enabled
        outer = getattr(_thread, "task", None)
        _thread.task = task
        _thread.depth = depth + 1
        state.grad_enabled = create_graph
        try:
            self._thread_main(task, queue)
            for callback in task.final_callbacks:
                callback()
            captured = task.captured
        finally:
            state.grad_enabled = grad_enabled
            _thread.task = outer
            _thread.depth = depth
            task.close()
            for end in _observers.end:
                end()
        return captured

    def _thread_main(self, task: GraphTask, queue: ReadyQueue) -> None:
        """Run what is ready until the pass has nothing outstanding."""
        while task.outstanding_tasks > 0:
            ready = queue.pop()
            node = ready.node
            if node is not None:
                self._evaluate_function(task, node, ready.inputs, queue)
            task.outstanding_tasks -= 1

    def _ready_queue(self, cpu_queue: ReadyQueue, device: Device) -> ReadyQueue:
        """The queue of the thread that serves a device: the caller's serves them all."""
        return cpu_queue

    def _evaluate_function(
        self, task: GraphTask, node: Node, inputs: InputBuffer, queue: ReadyQueue
    ) -> None:
        """Run a node; add its outputs to the inputs of the next nodes; queue those complete."""
        grads = inputs.values
        hooks = node.hooks
        if hooks is not None:
            _run_tensor_pre_hooks(hooks, grads)
        exec_info = task.exec_info
        if exec_info is not None:
            info = exec_info.get(node)
            if info is None:
                return
            if info.captures is not None:
                _run_leaf_hooks(node, grads)
                for capture in info.captures:
                    task.captured[capture.index] = grads[capture.input_nr]
            if not info.needed:
                return
        outputs = self._call_function(task, node, grads, hooks)
        edges = node.next_edges
        count: i64 = len(edges)
        if count == 0:
            return
        validate_outputs(edges, outputs, node.name())
        index: i64 = 0
        while index < count:
            edge = edges[index]
            function = edge.function
            if function is not None:
                self._hand_on(task, function, edge.input_nr, outputs[index], queue)
            index += 1

    def _call_function(
        self,
        task: GraphTask,
        node: Node,
        grads: list[TensorBase | None],
        hooks: NodeHooks | None,
    ) -> list[TensorBase | None]:
        if hooks is None:
            outputs = node.apply(grads)
        else:
            grads = _run_pre_hooks(hooks, grads)
            seen = tuple(grads)
            outputs = _run_post_hooks(hooks, node.apply(grads), seen)
        if not task.keep_graph:
            node.release_variables()
        return outputs

    def _hand_on(
        self,
        task: GraphTask,
        function: Node,
        input_nr: i64,
        grad: TensorBase | None,
        queue: ReadyQueue,
    ) -> None:
        """Add a gradient to a node's inputs; queue the node if it was the last."""
        exec_info = task.exec_info
        if exec_info is not None:
            info = exec_info.get(function)
            if info is None or not info.should_execute():
                return
        if function.owner is task:
            held: Any = function.buffer
            buffer: InputBuffer = InputBuffer(function.num_inputs()) if held is None else held
            buffer.add(input_nr, grad)
            function.pending -= 1
            if function.pending == 0:
                function.buffer = None
                function.owner = None  # last: from here on another pass may claim the node
                self._enqueue(task, function, buffer, queue)
            elif held is None:
                function.buffer = buffer
            return
        waiting = task.not_ready.get(function)
        if waiting is None:
            waiting = InputBuffer(function.num_inputs())
            task.not_ready[function] = waiting
        waiting.add(input_nr, grad)
        left = task.dependencies[function] - 1
        task.dependencies[function] = left
        if left == 0:
            del task.not_ready[function]
            self._enqueue(task, function, waiting, queue)

    def _enqueue(
        self, task: GraphTask, function: Node, buffer: InputBuffer, queue: ReadyQueue
    ) -> None:
        self._ready_queue(queue, buffer.device()).push(NodeTask(task, function, buffer))


ENGINE: Final = Engine()


def queue_callback(callback: Any) -> None:
    """Call `callback()` once when the running backward pass is complete.

    Raises:
        RuntimeError: no backward pass is running on this thread.
    """
    task = getattr(_thread, "task", None)
    if task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    running: GraphTask = task
    running.final_callbacks.append(callback)


def _reentrant_depth() -> int:
    depth: int = getattr(_thread, "depth", 0)
    return depth


def _min_topological_nr(outputs: list[Edge]) -> i64:
    """Nodes below this number cannot lead to any of the outputs."""
    if not outputs:
        return 0
    smallest: i64 = -1
    for edge in outputs:
        function = edge.function
        if function is not None and (smallest < 0 or function.topological_nr < smallest):
            smallest = function.topological_nr
    return smallest if smallest > 0 else 0


def _validate_roots(roots: tuple[Edge, ...], grads: list[TensorBase | None]) -> None:
    for index, edge in enumerate(roots):
        function = edge.function
        grad = grads[index]
        if function is None or grad is None:
            continue
        metadata = function.input_metadata(edge.input_nr)
        if metadata is not None and (
            grad.dtype is not metadata.dtype or sizes_of(grad) != metadata.shape
        ):
            grads[index] = fit_gradient(grad, metadata, function.name(), index)


def _run_leaf_hooks(node: Node, grads: list[TensorBase | None]) -> None:
    """A leaf's hooks run before its gradient is captured; AccumulateGrad does not run then."""
    if isinstance(node, AccumulateGradBase):
        meta = node.variable.meta
        if meta is not None and meta.hooks:
            run_tensor_hooks(meta.hooks, grads, 0)


def _run_tensor_pre_hooks(hooks: NodeHooks, grads: list[TensorBase | None]) -> None:
    for index, tensor_hooks in list(hooks.tensor_pre.items()):
        run_tensor_hooks(tensor_hooks, grads, index)
    for index, reference in list(hooks.retains_grad.items()):
        tensor = reference()
        grad = grads[index]
        if tensor is not None and grad is not None:
            _retain(tensor, grad)


def _retain(tensor: TensorBase, grad: TensorBase) -> None:
    meta = materialize_meta(tensor)
    if meta.grad is None:
        meta.grad = grad if current_state().grad_enabled else call_clone(grad)
    else:
        meta.grad = call_add_Tensor(meta.grad, grad)


def _run_pre_hooks(hooks: NodeHooks, grads: list[TensorBase | None]) -> list[TensorBase | None]:
    current = grads
    for hook in list(hooks.pre.values()):
        result = hook(tuple(current))
        if result is not None:
            current = _as_list(result, len(current))
    return current


def _run_post_hooks(
    hooks: NodeHooks, outputs: list[TensorBase | None], inputs: tuple[TensorBase | None, ...]
) -> list[TensorBase | None]:
    current = outputs
    for hook in list(hooks.post.values()):
        result = hook(tuple(current), inputs)
        if result is not None:
            current = _as_list(result, len(current))
    return current


def _as_list(result: Any, count: int) -> list[TensorBase | None]:
    values: list[TensorBase | None] = [result] if isinstance(result, TensorBase) else list(result)
    if len(values) != count:
        raise RuntimeError(
            f"hook has returned an incorrect number of values (got {len(values)}, but expected "
            f"{count})"
        )
    return values
