"""Hooks on tensors: gradient hooks, `retain_grad`, hooks after accumulation."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any

from plugrad.graph.history import grad_fn_of
from plugrad.graph.removable_handle import RemovableHandle, register
from plugrad.tensor.base import TensorBase, materialize_meta, needs_grad
from plugrad.tensor.levels import in_transform
from plugrad.tensor.views import CREATION_DEFAULT


def register_hook(tensor: TensorBase, hook: Any) -> RemovableHandle:
    """Call `hook(grad)` when the tensor's gradient is computed; a result replaces it.

    Raises:
        RuntimeError: the tensor does not require grad.
    """
    if not needs_grad(tensor):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    meta = materialize_meta(tensor)
    view = tensor._view_info
    if meta.hooks is not None and view is not None and view.creation_meta != CREATION_DEFAULT:
        # Such a view cannot be regenerated after a write to its base, so a further hook skips the
        # check.
        further: RemovableHandle = register(meta.hooks, hook)
        return further
    node = grad_fn_of(tensor)
    if meta.hooks is None:
        meta.hooks = OrderedDict()
        if node is not None:
            node._register_hook_dict(tensor)
        # The accumulator of a leaf reads the hooks of its variable when it runs.
    handle: RemovableHandle = register(meta.hooks, hook)
    return handle


def retain_grad(tensor: TensorBase) -> None:
    """Make a non-leaf keep its gradient in `.grad`; nothing happens for a leaf.

    Raises:
        RuntimeError: the tensor does not require grad, or a function is being transformed.
    """
    if not needs_grad(tensor):
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if in_transform():
        raise RuntimeError(
            "You are attempting to call Tensor.retain_grad() inside of a function being "
            "transformed by a plugrad.func transform. This is unsupported, please attempt to use "
            "the plugrad.func transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call "
            "retain_grad() outside of a function being transformed instead."
        )
    meta = materialize_meta(tensor)
    # Reading this does not regenerate a view's grad_fn after a write to its base.
    if meta.grad_fn is None or meta.retains_grad:
        return
    node = grad_fn_of(tensor)
    assert node is not None
    number = int(meta.output_nr)
    node._ensure_hooks().retains_grad[number] = weakref.ref(tensor)
    meta.retains_grad = True


def register_post_accumulate_grad_hook(tensor: TensorBase, hook: Any) -> RemovableHandle:
    """Call `hook(tensor)` after a gradient was accumulated into a leaf's `.grad`.

    Raises:
        RuntimeError: the tensor does not require grad, or is not a leaf.
    """
    if not needs_grad(tensor):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if grad_fn_of(tensor) is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    meta = materialize_meta(tensor)
    if meta.post_hooks is None:
        meta.post_hooks = OrderedDict()
    handle: RemovableHandle = register(meta.post_hooks, hook)
    return handle


def backward_hooks(tensor: TensorBase) -> Any:
    """The tensor's gradient hooks by handle number, an OrderedDict; None if it never had any.

    Hooks registered before an in-place write belong to the tensor's former value.
    """
    return None if tensor._autograd_meta is None else tensor._autograd_meta.hooks


def set_backward_hooks(tensor: TensorBase, hooks: Any) -> None:
    """Replace them. The node of a result does not follow: see `Node._register_hook_dict`."""
    materialize_meta(tensor).hooks = hooks


def delete_backward_hooks(tensor: TensorBase) -> None:
    raise RuntimeError("Deletion of _backwards_hooks not allowed!")


def post_accumulate_grad_hooks(tensor: TensorBase) -> Any:
    """A leaf's hooks for after accumulation by handle number; None if it never had any."""
    return None if tensor._autograd_meta is None else tensor._autograd_meta.post_hooks


def set_post_accumulate_grad_hooks(tensor: TensorBase, hooks: Any) -> None:
    materialize_meta(tensor).post_hooks = hooks


def delete_post_accumulate_grad_hooks(tensor: TensorBase) -> None:
    raise RuntimeError("Deletion of _post_accumulate_grad_hooks not allowed!")
