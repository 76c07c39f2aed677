"""Running hooks: those of tensors before a node's inputs are used, those of nodes around it."""

from __future__ import annotations

from typing import Any

from mypy_extensions import i64

from plugrad._generated.calls import call_add_Tensor, call_clone
from plugrad.autograd.accumulate_grad import AccumulateGradBase
from plugrad.dispatch.local_state import current_state
from plugrad.graph.node import Node, NodeHooks
from plugrad.tensor.base import TensorBase, materialize_meta, sizes_of


def run_tensor_pre_hooks(hooks: NodeHooks, grads: list[TensorBase | None]) -> None:
    """Hooks of the tensors that a node made; those that retain a gradient come last."""
    if hooks.tensor_pre:
        for index, tensor_hooks in list(hooks.tensor_pre.items()):
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
        meta = node.variable.meta
        if meta is not None and meta.hooks:
            run_tensor_hooks(meta.hooks, grads, 0)


def run_tensor_hooks(hooks: dict[int, Any], grads: list[TensorBase | None], index: i64) -> None:
    """Run a tensor's gradient hooks on `grads[index]`, in order; a result replaces it."""
    for hook in list(hooks.values()):
        result = hook(grads[index])
        if result is not None:
            if not isinstance(result, TensorBase):
                raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
            _check_hook_result(hook, grads[index], result)
            grads[index] = result


def _check_hook_result(hook: Any, before: TensorBase | None, after: TensorBase) -> None:
    if before is None:
        return
    name = getattr(hook, "__name__", type(hook).__name__)
    if sizes_of(before) != sizes_of(after):
        raise RuntimeError(f"hook '{name}' has changed the size of value")
    if before.dtype is not after.dtype:
        raise RuntimeError(
            f"hook '{name}' has changed the type of value (was {before.dtype.scalar_name}Tensor "
            f"got {after.dtype.scalar_name}Tensor)"
        )


def _retain(tensor: TensorBase, grad: TensorBase) -> None:
    meta = materialize_meta(tensor)
    if meta.grad is None:
        meta.grad = grad if current_state().grad_enabled else call_clone(grad)
    else:
        meta.grad = call_add_Tensor(meta.grad, grad)


def run_pre_hooks(hooks: NodeHooks, grads: list[TensorBase | None]) -> list[TensorBase | None]:
    """A node's own hooks, before it runs, on all its inputs."""
    current = grads
    for hook in list(hooks.pre.values()):
        result = hook(tuple(current))
        if result is not None:
            current = _as_list(result, len(current))
    return current


def run_post_hooks(
    hooks: NodeHooks, outputs: list[TensorBase | None], inputs: tuple[TensorBase | None, ...]
) -> list[TensorBase | None]:
    """A node's own hooks, after it ran, on its outputs."""
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
