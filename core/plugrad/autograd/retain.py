"""Hooks on tensors: gradient hooks, `retain_grad`, hooks after accumulation."""

from __future__ import annotations

import weakref
from typing import Any

from plugrad.graph.history import grad_accumulator, grad_fn_of
from plugrad.graph.node import RemovableHandle
from plugrad.tensor.base import TensorBase, materialize_meta, needs_grad


def register_hook(tensor: TensorBase, hook: Any) -> RemovableHandle:
    """Call `hook(grad)` when the tensor's gradient is computed; a result replaces it.

    Raises:
        RuntimeError: the tensor does not require grad.
    """
    if not needs_grad(tensor):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node = grad_fn_of(tensor)
    meta = materialize_meta(tensor)
    if node is None:
        # The accumulator reads the hooks of its variable when it runs.
        if meta.hooks is None:
            meta.hooks = {}
        return RemovableHandle(meta.hooks, hook)
    hooks = node.ensure_hooks().tensor_pre
    number: int = meta.output_nr
    return RemovableHandle(hooks.setdefault(number, {}), hook)


def retain_grad(tensor: TensorBase) -> None:
    """Make a non-leaf keep its gradient in `.grad`; nothing happens for a leaf.

    Raises:
        RuntimeError: the tensor does not require grad.
    """
    if not needs_grad(tensor):
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    node = grad_fn_of(tensor)
    meta = materialize_meta(tensor)
    if node is None or meta.retains_grad:
        return
    number: int = meta.output_nr
    node.ensure_hooks().retains_grad[number] = weakref.ref(tensor)
    meta.retains_grad = True


def register_post_accumulate_grad_hook(tensor: TensorBase, hook: Any) -> RemovableHandle:
    """Call `hook(tensor)` after a gradient was accumulated into a leaf's `.grad`.

    Raises:
        RuntimeError: the tensor does not require grad, or is no leaf.
    """
    if not needs_grad(tensor):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if grad_fn_of(tensor) is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    grad_accumulator(tensor)
    meta = materialize_meta(tensor)
    if meta.post_hooks is None:
        meta.post_hooks = {}
    return RemovableHandle(meta.post_hooks, hook)
