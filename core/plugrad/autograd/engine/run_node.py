"""Runs one node: its hooks, the gradients captured before it, the checks after it."""

from __future__ import annotations

from plugrad.autograd.engine.anomaly import ANOMALY, check_outputs
from plugrad.autograd.engine.graph_task import GraphTask
from plugrad.autograd.engine.input_buffer import InputBuffer
from plugrad.autograd.engine.run_hooks import (
    run_leaf_hooks,
    run_post_hooks,
    run_pre_hooks,
    run_tensor_pre_hooks,
)
from plugrad.autograd.engine.validate import validate_outputs
from plugrad.autograd.function.node import FunctionNode
from plugrad.dispatch.local_state import LocalState
from plugrad.graph.node import MAX_SEQUENCE_NR, Node, NodeHooks
from plugrad.tensor.base import TensorBase
from plugrad.tensor.calls.overridable import IN_CORE, OVERRIDES


def run_node(
    state: LocalState, task: GraphTask, node: Node, inputs: InputBuffer
) -> list[TensorBase | None] | None:
    """The gradients that a node computes from its inputs, checked; None if it need not run."""
    grads = inputs.values
    hooks = node._node_hooks
    exec_info = task.exec_info
    if exec_info is not None:
        info = exec_info.get(node)
        if info is None:
            # A single root is never filtered out. If it leads to no requested output, only its
            # tensor's hooks get the gradient.
            _run_tensor_hooks(node, hooks, grads)
            return None
        if not info.needed:
            _run_tensor_hooks(node, hooks, grads)
            task.capture(info, grads)
            return None
        # As in PyTorch, hooks do not change what is captured from a node that runs itself.
        task.capture(info, grads)
        node._partial = True
    if hooks is not None or node._number == MAX_SEQUENCE_NR:
        _run_tensor_hooks(node, hooks, grads)
    if OVERRIDES.active:
        outputs = _call_without_overrides(state, task, node, grads, hooks)
    else:
        outputs = _call_function(state, task, node, grads, hooks)
    if ANOMALY.enabled:
        check_outputs(node, outputs)
    return outputs


def _run_tensor_hooks(node: Node, hooks: NodeHooks | None, grads: list[TensorBase | None]) -> None:
    if hooks is not None:
        run_tensor_pre_hooks(hooks, grads)
    run_leaf_hooks(node, grads)


def _call_without_overrides(
    state: LocalState,
    task: GraphTask,
    node: Node,
    grads: list[TensorBase | None],
    hooks: NodeHooks | None,
) -> list[TensorBase | None]:
    """Run a node so that no `__plugrad_function__` sees formulas; a user's own node it does."""
    before = state.overrides_off
    if not isinstance(node, FunctionNode):
        state.overrides_off = before | IN_CORE
    try:
        return _call_function(state, task, node, grads, hooks)
    finally:
        state.overrides_off = before


def _call_function(
    state: LocalState,
    task: GraphTask,
    node: Node,
    grads: list[TensorBase | None],
    hooks: NodeHooks | None,
) -> list[TensorBase | None]:
    trace = state.trace
    seen: tuple[TensorBase | None, ...] = ()
    if hooks is not None:
        grads = run_pre_hooks(hooks, grads)
        seen = tuple(grads)
    outputs = node.apply(grads) if trace is None else trace.run_node(node, grads)
    node._partial = False
    if node._edge_count > 0:
        validate_outputs(outputs, node)
    hooks = node._node_hooks  # also those that were registered just now
    if hooks is not None:
        outputs = run_post_hooks(hooks, outputs, seen)
    if not task.keep_graph:
        if trace is not None:
            trace.release(node)
        node._release_variables()
    return outputs
