"""Callbacks around a backward pass: queued by code that runs in it, and registered by plugins."""

from __future__ import annotations

import threading
from typing import Any, Final, final

from mypy_extensions import i64

from plugrad.autograd.engine.graph_task import GraphTask
from plugrad.dispatch.fork import hold_while_forking
from plugrad.dispatch.local_state import current_state
from plugrad.graph.node import Node


@final
class Observers:
    """The listeners to the begin and end of a pass; the plugin layer sets them."""

    def __init__(self) -> None:
        self.begin: list[Any] = []
        self.end: list[Any] = []


observers: Final = Observers()


def observe_backward(begin: Any, end: Any) -> None:
    """Call `begin()` before and `end()` after every pass of the engine."""
    observers.begin.append(begin)
    observers.end.append(end)


@final
class _PassNumbers:
    """Numbers for passes; a pass gets one when it is first requested."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.last: i64 = 0


_numbers: Final = _PassNumbers()
hold_while_forking(_numbers.lock)


def current_graph_task_id() -> int:
    """The number of the backward pass that the calling thread works for; -1 outside of one."""
    task = current_state().graph_task
    if task is None:
        return -1
    running: GraphTask = task
    if running.number < 0:
        with _numbers.lock:
            if running.number < 0:
                _numbers.last += 1
                running.number = _numbers.last
    return running.number


def current_autograd_node() -> Node | None:
    """The node of a backward pass that the calling thread runs, or None."""
    node: Node | None = current_state().node
    return node


def keeps_graph() -> bool:
    """Whether the running pass retains the graph; True outside of one."""
    task = current_state().graph_task
    if task is None:
        return True
    running: GraphTask = task
    return running.keep_graph


def will_engine_execute_node(node: Any) -> bool:
    """Whether the running pass runs a node, ran it, or captures a gradient there.

    Raises:
        RuntimeError: not within a pass; no node; a leaf's, at which a gradient is captured.
    """
    if not isinstance(node, Node):
        raise RuntimeError("_will_engine_execute_node expects an grad_fn")
    task = current_state().graph_task
    if task is None:
        raise RuntimeError(
            "_will_engine_execute_node: should only be called during the backward pass"
        )
    running: GraphTask = task
    return running.will_execute(id(node))


def execution_order() -> list[Node]:
    """The nodes that the running pass runs, in their order; without multithreading only.

    Raises:
        RuntimeError: not within a pass, or it may use the threads of devices.
    """
    task = current_state().graph_task
    if task is None:
        raise RuntimeError(
            "_current_graph_task_execution_order: should only be called during the backward pass"
        )
    running: GraphTask = task
    if running.snapshot.multithreading:
        raise RuntimeError(
            "_current_graph_task_execution_order: expects the current backward to be executed "
            "with multithreading disabled, e.g. by running:\n\n"
            ">>> with plugrad.autograd.set_multithreading_enabled(False):\n"
            "...     loss.backward()\n"
        )
    return running.execution_order()


def is_checkpoint_valid() -> bool:
    """Whether the running backward pass, if any, computes the gradients of all leaves."""
    task = current_state().graph_task
    if task is None:
        return True
    running: GraphTask = task
    return running.exec_info is None


def queue_callback(callback: Any) -> None:
    """Call `callback()` once when the running backward pass is complete.

    Raises:
        RuntimeError: no backward pass is running on this thread.
    """
    task = current_state().graph_task
    if task is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    running: GraphTask = task
    if running.shared:
        with running.lock:
            _append(running, callback)
    else:
        _append(running, callback)


def _append(task: GraphTask, callback: Any) -> None:
    if task.final_callbacks is None:
        task.final_callbacks = []
    task.final_callbacks.append(callback)
