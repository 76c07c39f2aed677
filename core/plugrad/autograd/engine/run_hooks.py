"""Runs hooks: tensors' hooks before a node's inputs are used, and the node's own hooks around
it."""

from __future__ import annotations

from typing import Any

from mypy_extensions import i64

from plugrad._generated.calls import call_add_Tensor, call_clone
from plugrad.autograd.engine.hook_results import check_result, checked_results, tell_of_hook
from plugrad.autograd.variable.accumulate_grad import AccumulateGradBase
from plugrad.graph.node import Node, NodeHooks
from plugrad.tensor.base import TensorBase, materialize_meta
from plugrad.tensor.calls.overridable import call_users


def run_tensor_pre_hooks(hooks: NodeHooks, grads: list[TensorBase | None]) -> None:
    """Hooks of the tensors that a node made; those that retain a gradient come last."""
    if hooks.tensor_pre:
        for tensor_hooks, index in list(hooks.tensor_pre):
            run_tensor_hooks(tensor_hooks, grads, index)
    if hooks.retains_grad:
        for index, reference in list(hooks.retains_grad.items()):
            tensor = reference()
            grad = grads[index]
            if tensor is not None and grad is not None:
                _retain(tensor, grad)


def run_leaf_hooks(node: Node, grads: list[TensorBase | None]) -> None:
    """Hooks of a leaf, which the leaf keeps itself, since its node may not outlive a graph."""
    if isinstance(node, AccumulateGradBase):
        meta = node.variable._autograd_meta
        if meta is not None and meta.hooks:
            run_tensor_hooks(meta.hooks, grads, 0)


def run_tensor_hooks(hooks: dict[int, Any], grads: list[TensorBase | None], index: i64) -> None:
    """Run a tensor's gradient hooks on `grads[index]`, in order; a result replaces it."""
    for hook in list(hooks.values()):
        tell_of_hook("tensor", hook)
        result = hook(grads[index])
        if result is not None:
            check_result(hook, grads[index], result)
            grads[index] = result


def _retain(tensor: TensorBase, grad: TensorBase) -> None:
    meta = materialize_meta(tensor)
    meta.grad = call_clone(grad) if meta.grad is None else call_add_Tensor(meta.grad, grad)


def run_pre_hooks(hooks: NodeHooks, grads: list[TensorBase | None]) -> list[TensorBase | None]:
    """A node's own hooks, before it runs, on all its inputs."""
    current = grads
    if hooks.pre is not None:
        for hook in list(hooks.pre.values()):
            tell_of_hook("pre", hook)
            result = call_users(hook, (tuple(current),))
            if result is not None:
                current = checked_results(hook, current, result)
    return current


def run_post_hooks(
    hooks: NodeHooks, outputs: list[TensorBase | None], inputs: tuple[TensorBase | None, ...]
) -> list[TensorBase | None]:
    """A node's own hooks, after it ran, on its outputs."""
    current = outputs
    if hooks.post is not None:
        for hook in list(hooks.post.values()):
            tell_of_hook("post", hook)
            result = call_users(hook, (tuple(current), inputs))
            if result is not None:
                current = checked_results(hook, current, result)
    return current
