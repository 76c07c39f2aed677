"""Notifies listeners of a pass (`Trace`); without listeners none of this runs."""

from __future__ import annotations

from typing import Any

from mypy_extensions import i64

from plugrad.autograd.engine.graph_task import GraphTask
from plugrad.autograd.engine.input_buffer import InputBuffer
from plugrad.dispatch.listener import Trace
from plugrad.graph.node import Node
from plugrad.tensor.base import TensorBase


def tell_of_pass(trace: Trace, task: GraphTask, root: Node) -> None:
    """A pass begins; dependencies have been counted."""
    counts: list[tuple[Any, int]] = []
    stack: list[Node] = [root]
    seen: set[int] = {id(root)}
    while stack:
        node = stack.pop()
        if node._owner is task:
            counts.append((node, int(node._pending)))
        elif node in task.dependencies:
            counts.append((node, task.dependencies[node]))
        for index in range(node._edge_count):
            function = node._edge_node(index)
            if function is not None and id(function) not in seen:
                seen.add(id(function))
                stack.append(function)
    trace.enter_pass(task, root, counts)


def tell_of_arrival(
    trace: Trace,
    task: GraphTask,
    node: Node,
    input_nr: i64,
    grad: TensorBase | None,
    buffer: InputBuffer,
) -> None:
    """A gradient is about to be added to the inputs of a node."""
    is_sum = grad is not None and buffer.values[input_nr] is not None
    trace.arrive(task, node, int(input_nr), grad, is_sum, int(node._pending) - 1)
