"""The engine: runs a graph of nodes backwards, without recursion, on one thread per device.

A node runs when all gradients that flow into it have arrived. `compute_dependencies` counts them;
`_evaluate` runs a node, passes on its outputs, and queues the nodes that are then ready.

The thread that calls backward runs the host's nodes. As long as no other device is involved, it
works alone and takes no locks. The first node for another device makes the pass a shared one.
"""

from __future__ import annotations

import atexit
import os
from typing import Any, Final, final

from mypy_extensions import i64

from plugrad.autograd.engine.anomaly import ANOMALY, report_error
from plugrad.autograd.engine.callbacks import observers
from plugrad.autograd.engine.device_thread import DeviceThread, DeviceThreads, device_queues
from plugrad.autograd.engine.graph_task import GraphTask
from plugrad.autograd.engine.input_buffer import InputBuffer
from plugrad.autograd.engine.primitives import Primitives
from plugrad.autograd.engine.ready_queue import NodeTask, ReadyQueue
from plugrad.autograd.engine.reentrant_pool import Handover, ReentrantPool
from plugrad.autograd.engine.roots import GraphRoot, min_topological_nr, validate_roots
from plugrad.autograd.engine.run_node import run_node
from plugrad.autograd.engine.signals import let_python_look
from plugrad.autograd.engine.telling import tell_of_arrival, tell_of_pass
from plugrad.device import Device
from plugrad.dispatch.backends.active import active_backends, queue_of
from plugrad.dispatch.backends.streams import STREAMS
from plugrad.dispatch.listener import Trace
from plugrad.dispatch.local_state import LocalState, Snapshot, current_state
from plugrad.graph.node import Edge, Node
from plugrad.tensor.base import TensorBase

# So many passes nest on one stack before another thread's is used. Interpreted code spends several
# frames of Python's on each.
MAX_DEPTH: Final = 20 if __file__.endswith(".py") else 60
# The number of nodes after which signals and waiting threads get a turn.
NODES_BETWEEN_LOOKS: Final = 64


@final
class Engine:
    """Runs graph tasks. There is one, `ENGINE`, for all threads.

    Args:
        primitives: where locks and threads come from.
        max_depth: how many passes nest on one stack before another thread's stack is used.
    """

    def __init__(self, primitives: Primitives, max_depth: int = MAX_DEPTH) -> None:
        self._primitives = primitives
        self._max_depth: i64 = max_depth
        # Claiming nodes for a pass is one step: two passes may share nodes.
        self._claims: Any = primitives.lock()
        self._threads = DeviceThreads(primitives, self._run_task)
        self._pool: ReentrantPool | None = None
        self._pool_lock: Any = primitives.lock()

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
        validate_roots(roots, grads)
        state = current_state()
        worker: DeviceThread | None = state.worker
        home = ReadyQueue() if worker is None else worker.ready
        outer: GraphTask | None = state.graph_task
        depth: i64 = 0 if outer is None else outer.reentrant_depth + 1
        trace: Trace | None = None  # the listener that was notified of the pass's begin
        task = GraphTask(keep_graph, create_graph, depth, Snapshot(state), home)
        single = len(roots) == 1
        first = roots[0].function
        assert first is not None
        root: Node = first if single else GraphRoot(roots, grads)
        task.root = root
        task.can_checkpoint = not outputs and (outer is None or outer.can_checkpoint)
        lowest = min_topological_nr(outputs)
        try:
            with self._claims:
                task.compute_dependencies(root, lowest)
            trace = state.trace
            if trace is not None:
                tell_of_pass(trace, task, root)
            buffer = InputBuffer(root._num_inputs() if single else 0)
            if single:
                if task.streams is None:
                    buffer.add(roots[0].input_nr, grads[0], False, None)
                else:
                    buffer.add_on_streams(roots[0].input_nr, grads[0], False, None, worker, root)
                grads[0] = None
            for begin in observers.begin:
                begin()
            if outputs:
                task.init_to_execute(root, outputs, accumulate_grad, lowest)
                if not accumulate_grad:
                    task.captured = [None] * len(outputs)
            try:
                if worker is None:
                    self._enqueue(task, root, buffer)
                else:
                    task.worker = worker
                    self._share(task)
                    task.outstanding_tasks = 1
                    device = buffer.device()
                    self._send(task, NodeTask(task, root, buffer), device)
            except BaseException as error:
                if not task.shared:
                    raise
                task.fail(error)
            self._run(state, task)
            return task.captured
        finally:
            if task.streams is not None:
                task.streams.join()  # what failed may have left work behind
            task.close()
            if trace is not None:
                trace.leave_pass(task)
            for end in observers.end:
                end()

    # The thread that called backward.

    def _run(self, state: LocalState, task: GraphTask) -> None:
        """Drive a pass to its end on this thread, or on another one if the stack is deep."""
        try:
            if state.depth >= self._max_depth:
                self._hand_over(state, task)
            else:
                self._drive_nested(state, task)
        except BaseException:
            report_error(task.failed)
            raise
        error = task.error
        if error is not None:
            report_error(task.failed)
            try:
                raise error
            finally:
                del error  # its traceback refers to this frame
        for thread in task.devices:
            thread.queue.join()
        if task.streams is not None:
            task.streams.join()
        callbacks = task.final_callbacks
        if callbacks is not None:
            outer = state.graph_task
            state.graph_task = task
            try:
                for callback in callbacks:  # one may add another
                    callback()
            finally:
                state.graph_task = outer

    def _drive_nested(self, state: LocalState, task: GraphTask) -> None:
        """`_drive`, as one more level on this thread's stack; afterwards its state is as before."""
        outer = state.graph_task
        outer_node = state.node
        state.depth += 1
        try:
            if task.shared:
                self._drive_shared(state, task)
            else:
                self._drive_alone(state, task)
        finally:
            state.depth -= 1
            state.graph_task = outer
            state.node = outer_node
            task.snapshot.restore(state)

    def _drive_alone(self, state: LocalState, task: GraphTask) -> None:
        """Run the nodes that are ready, on this thread alone; errors simply propagate."""
        queue = task.home
        create_graph = task.create_graph
        state.graph_task = task
        countdown: i64 = NODES_BETWEEN_LOOKS
        while task.outstanding_tasks > 0:
            item = queue.pop()
            node = item.node
            inputs = item.inputs
            del item
            assert node is not None
            assert inputs is not None
            state.grad_enabled = create_graph
            try:
                if ANOMALY.enabled or state.trace is not None or task.streams is not None:
                    self._evaluate_watched(state, task, node, inputs)
                else:
                    self._evaluate(state, task, node, inputs)
                if task.shared:
                    with task.lock:
                        task.outstanding_tasks -= 1
            except BaseException as error:
                if not task.shared:
                    raise
                task.fail(error)
            if task.shared:
                self._drive_shared(state, task)
                return
            task.outstanding_tasks -= 1
            countdown -= 1
            if countdown == 0:
                countdown = NODES_BETWEEN_LOOKS
                let_python_look()

    def _drive_shared(self, state: LocalState, task: GraphTask) -> None:
        """Run what this thread's queue holds until the pass is complete."""
        worker = task.worker
        while True:
            try:
                with task.lock:
                    if task.is_complete():
                        return
                self._run_task(state, task.home.get() if worker is None else worker.pop())
            except BaseException as error:
                # Not from a node: this thread was interrupted. What runs on others ends first.
                if task.error is not None:
                    raise
                task.fail(error)

    def _hand_over(self, state: LocalState, task: GraphTask) -> None:
        """Let a thread of the pool drive a pass; wait for it."""
        self._share(task)
        handover = Handover(task, self._primitives)
        try:
            with self._pool_lock:
                if self._pool is None:
                    self._pool = ReentrantPool(self._primitives, self._drive_for_another)
                pool = self._pool
            pool.submit(handover)
        except BaseException as error:
            task.fail(error)
            if handover.take():  # no thread drives it: the pool only waits for threads to end
                self._drive_nested(state, task)
                return
        while not handover.done:
            try:
                handover.wait()
            except BaseException as error:
                if task.error is not None:
                    raise
                task.fail(error)
        for queue in device_queues():
            queue.join()

    def _drive_for_another(self, handover: Handover) -> None:
        """In the pool: drive a pass for a waiting thread; only this thread takes tasks from its
        queue."""
        if not handover.take():
            return
        task = handover.task
        state = current_state()
        state.worker = task.worker
        try:
            if task.worker is not None:
                task.worker.queue.activate()
            if task.streams is not None:
                task.streams.adopt()
            # The waiting thread made the devices wait for its own work; this thread must do the
            # same.
            for queue in device_queues():
                queue.join()
            task.snapshot.restore(state)
            self._drive_nested(state, task)
            for queue in device_queues():
                queue.fork()
        except BaseException as error:
            task.fail(error)
        finally:
            state.worker = None
            handover.finish()

    # Devices' threads.

    def _share(self, task: GraphTask) -> None:
        """Prepare a pass for several threads. Every device starts after the caller's work so far,
        because any of them may be used."""
        if task.shared:
            return
        task.share(self._primitives)
        for queue in device_queues():
            queue.fork()

    def _run_task(self, state: LocalState, item: NodeTask) -> None:
        """Run one task of a shared pass; whatever it raises becomes the pass's error."""
        task = item.graph_task
        node = item.node
        inputs = item.inputs
        worker: DeviceThread | None = state.worker
        if task is None:
            if worker is not None:
                worker.stopping = True
            return
        if node is None or inputs is None:
            return
        item.inputs = None
        with task.lock:
            runs = task.error is None and not task.finished
            # A pass's owner does not wait for itself.
            if runs and worker is not None:
                task.running += 1
        if runs:
            outer = state.graph_task
            outer_node = state.node
            before = Snapshot(state)
            try:
                task.snapshot.restore(state)
                state.grad_enabled = task.create_graph
                state.graph_task = task
                inputs.join_devices(worker)
                if ANOMALY.enabled or state.trace is not None or task.streams is not None:
                    self._evaluate_watched(state, task, node, inputs)
                else:
                    self._evaluate(state, task, node, inputs)
            except BaseException as error:
                task.fail(error)
            state.graph_task = outer
            state.node = outer_node
            before.restore(state)
        del node, inputs
        with task.lock:
            if runs and worker is not None:
                task.running -= 1
            task.outstanding_tasks -= 1
            complete = task.is_complete()
        if complete:
            self._wake_owner(state, task)

    def _wake_owner(self, state: LocalState, task: GraphTask) -> None:
        """Wake the thread that waits for a pass; it may be this one."""
        wake = NodeTask(task, None, None)
        worker = task.worker
        if worker is None:
            task.home.put(wake)
        elif worker is not state.worker:
            worker.push(wake)

    # Nodes.

    def _evaluate_watched(
        self, state: LocalState, task: GraphTask, node: Node, inputs: InputBuffer
    ) -> None:
        """`_evaluate` with anomaly mode, a trace, or a stream to choose."""
        trace = state.trace
        if trace is not None:
            trace.enter_node(node)
        try:
            if task.streams is None:
                self._evaluate(state, task, node, inputs)
            else:
                guard = task.streams.enter(node, task.lock)
                try:
                    inputs.order_streams()
                    self._evaluate(state, task, node, inputs)
                finally:
                    guard.leave()
        except BaseException:
            if ANOMALY.enabled and task.error is None:
                task.failed = node
            raise
        finally:
            if trace is not None:
                trace.leave_node(node)

    def _evaluate(
        self, state: LocalState, task: GraphTask, node: Node, inputs: InputBuffer
    ) -> None:
        """Run a node; add its outputs to the inputs of the next nodes; queue those complete."""
        state.node = node
        outputs = run_node(state, task, node, inputs)
        if outputs is None:
            return
        count: i64 = node._edge_count
        index: i64 = 0
        while index < count:
            function = node._edge_node(index)
            if function is not None:
                grad = outputs[index]
                # The next buffer may then be the only one that holds it, and write to it.
                outputs[index] = None
                if task.shared:
                    self._hand_on_shared(state, task, function, node._edge_nr(index), grad)
                else:
                    self._hand_on(task, function, node._edge_nr(index), grad)
            index += 1

    def _hand_on(
        self, task: GraphTask, function: Node, input_nr: i64, grad: TensorBase | None
    ) -> None:
        """Add a gradient to a node's inputs; queue the node if it was the last."""
        if not task.wants(function):
            return
        if function._owner is task:
            held: Any = function._buffer
            buffer: InputBuffer = InputBuffer(function._num_inputs()) if held is None else held
            trace = task.snapshot.trace
            if trace is not None:
                tell_of_arrival(trace, task, function, input_nr, grad, buffer)
            if task.streams is None:
                buffer.add(input_nr, grad, task.create_graph, trace)
            else:
                buffer.add_on_streams(input_nr, grad, task.create_graph, trace, None, function)
            function._pending -= 1
            if function._pending == 0:
                function._buffer = None
                function._owner = None  # last: from here on another pass may claim the node
                self._enqueue(task, function, buffer)
            elif held is None:
                function._buffer = buffer
            return
        complete = task.add_to_dicts(function, input_nr, grad)
        if complete is not None:
            self._enqueue(task, function, complete)

    def _enqueue(self, task: GraphTask, node: Node, inputs: InputBuffer) -> None:
        """Queue a node whose inputs are complete, while only this thread works on the pass."""
        device = inputs.device()
        if device.is_host or task.bound or not task.snapshot.multithreading:
            trace = task.snapshot.trace
            if trace is not None:
                trace.queue_node(task, node, "")
            task.outstanding_tasks += 1
            task.home.push(NodeTask(task, node, inputs))
            return
        if queue_of(device).is_bound():
            task.bound = True
            self._enqueue(task, node, inputs)
            return
        self._share(task)
        with task.lock:
            task.outstanding_tasks += 1
        self._send(task, NodeTask(task, node, inputs), device)

    def _hand_on_shared(
        self,
        state: LocalState,
        task: GraphTask,
        function: Node,
        input_nr: i64,
        grad: TensorBase | None,
    ) -> None:
        """`_hand_on` where other threads work on the pass too."""
        if not task.wants(function):
            return
        producer: DeviceThread | None = state.worker
        with task.lock:
            if task.error is not None or task.finished:
                return
            if function._owner is task:
                held: Any = function._buffer
                buffer: InputBuffer = InputBuffer(function._num_inputs()) if held is None else held
                function._buffer = buffer
                trace = task.snapshot.trace
                if trace is not None:
                    tell_of_arrival(trace, task, function, input_nr, grad, buffer)
                if task.streams is None:
                    buffer.add_in_order(input_nr, grad, task.create_graph, trace, producer)
                else:
                    buffer.add_on_streams(
                        input_nr, grad, task.create_graph, trace, producer, function
                    )
                function._pending -= 1
                if function._pending > 0:
                    return
                function._buffer = None
                function._owner = None  # last: from here on another pass may claim the node
            else:
                complete = task.add_to_dicts(function, input_nr, grad, producer)
                if complete is None:
                    return
                buffer = complete
            task.outstanding_tasks += 1
        device = buffer.device()
        self._send(task, NodeTask(task, function, buffer), device)

    def _send(self, task: GraphTask, item: NodeTask, device: Device) -> None:
        """Put a task into the queue of the thread that is to run it, and its work into the order
        that the devices keep."""
        trace = task.snapshot.trace
        try:
            if device.is_host or task.bound or not task.snapshot.multithreading:
                if trace is not None and item.node is not None:
                    trace.queue_node(task, item.node, "")
                worker = task.worker
                if worker is None:
                    task.home.put(item)
                else:
                    self._threads.push(worker, item)
                return
            thread = self._threads.thread_of(device)
            with task.lock:
                if thread not in task.devices:
                    task.devices.append(thread)
            inputs = item.inputs
            if inputs is not None:
                inputs.order_before(thread)
            if trace is not None and item.node is not None:
                trace.queue_node(task, item.node, str(device))
            self._threads.push(thread, item)
        except BaseException:
            with task.lock:
                task.outstanding_tasks -= 1
            raise

    # The process.

    def stop(self) -> None:
        """Let all threads finish their queues and end; new ones start when needed."""
        with self._pool_lock:
            pool = self._pool
            self._pool = None
        if pool is not None:
            pool.stop()
        self._threads.stop()

    def forget_threads(self) -> None:
        """In the child of a fork, where only the forking thread continues."""
        self._claims = self._primitives.lock()
        self._pool_lock = self._primitives.lock()
        self._pool = None
        self._threads = DeviceThreads(self._primitives, self._run_task)
        for active in active_backends():
            active.queues.clear()
        STREAMS.forget(STREAMS.active)
        state = current_state()
        state.worker = None
        state.graph_task = None
        state.depth = 0


ENGINE: Final = Engine(Primitives())
atexit.register(ENGINE.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ENGINE.forget_threads)
