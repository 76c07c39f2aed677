"""AccumulateGrad: the node at every leaf, which adds the gradient that arrives to `.grad`."""

from __future__ import annotations

import os
import threading
from typing import Any, Final, final

from mypy_extensions import i64, mypyc_attr

from plugrad._generated.calls import call_add__Tensor, call_add_Tensor, call_clone
from plugrad.autograd.engine.hook_results import run_post_accumulate_hooks
from plugrad.autograd.engine.ownership import is_unshared
from plugrad.dispatch.keys import FORWARD_AD_BIT, FUNCTIONALIZE_BIT, MATH_BITS
from plugrad.dispatch.local_state import current_state
from plugrad.dtype import ALL_DTYPES
from plugrad.graph.node import ANY_DTYPE, MAX_SEQUENCE_NR, InputMetadata, Node, own_metadata
from plugrad.graph.support import operators
from plugrad.memory_format import contiguous_format
from plugrad.tensor.aliasing.layout import is_row_major_in_numpy, strides
from plugrad.tensor.aliasing.memory_layout import is_dense
from plugrad.tensor.aliasing.placement import placed_like, put_where
from plugrad.tensor.aliasing.strides import contiguous_strides
from plugrad.tensor.base import (
    ANY_GRAD_DTYPE,
    OWN_GRAD_DTYPE,
    TensorBase,
    detached,
    make_tensor,
    materialize_meta,
    replace_array,
    sizes_of,
)

STRIPES: Final = 64


@final
class _Locks:
    """Locks for leaves: threads may run backward into the same one, and kernels let them run.

    Leaves share a few locks, since one for each would cost more than it holds apart.
    """

    def __init__(self) -> None:
        self.next: i64 = 0
        self.locks: list[Any] = []
        self.renew()

    def renew(self) -> None:
        """Replace all locks: after a fork, the child has no other threads."""
        self.locks = [threading.RLock() for _ in range(STRIPES)]


_locks: Final = _Locks()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_locks.renew)


@mypyc_attr(allow_interpreted_subclasses=True)
class AccumulateGradBase(Node):
    """Adds to a leaf's `.grad`.

    The graph keeps the node alive, and the node keeps the leaf, which refers to it weakly.

    `plugrad._tensor.classes.AccumulateGrad` is the class of the instances: native classes have no
    weak references.
    """

    def __init__(self, variable: TensorBase) -> None:
        super().__init__(MAX_SEQUENCE_NR)
        self.variable = variable
        self._metadata0 = own_metadata(variable)
        self.update_grad_dtype()

    @final
    def update_grad_dtype(self) -> None:
        """Expect gradients of the variable's `grad_dtype`."""
        variable = self.variable
        meta = variable._autograd_meta
        code: int = OWN_GRAD_DTYPE if meta is None else int(meta.grad_dtype)
        metadata = self._metadata0
        if metadata is None:
            return
        if code == OWN_GRAD_DTYPE:
            metadata.dtype = variable.dtype
        elif code == ANY_GRAD_DTYPE:
            metadata.dtype = ANY_DTYPE
        else:
            metadata.dtype = ALL_DTYPES[code - 1]

    @property
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        variable = self.variable
        return (InputMetadata(sizes_of(variable), variable.dtype, variable.device),)

    def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:
        variable = self.variable
        meta = materialize_meta(variable)
        if meta.grad_fn is not None:
            raise RuntimeError("leaf variable has been moved into the graph interior")
        if grads[0] is not None and meta.requires_grad:
            _move(grads, variable if meta.grad is None else meta.grad)
            with _locks.locks[(id(meta) >> 6) % STRIPES]:
                grad = meta.grad
                if grad is None:
                    # The engine keeps what hooks are to see of a node that has some.
                    meta.grad = _own(grads, variable, 0 if self._node_hooks is None else 1)
                elif current_state().grad_enabled:
                    total = call_add_Tensor(grad, _first(grads))
                    meta.grad = total if _has_layout_of(total, grad) else _copy_like(total, grad)
                else:
                    call_add__Tensor(grad, _first(grads))
        if meta.post_hooks:
            run_post_accumulate_hooks(meta.post_hooks, variable)
        return []


def _move(grads: list[TensorBase | None], target: TensorBase) -> None:
    """Give a gradient the placement of the leaf.

    Call it without a lock: it may wait for other ranks, and these may be threads that need the
    lock.
    """
    grad = _first(grads)
    array = placed_like(grad._backend_array, target._backend_array)
    if array is not grad._backend_array:
        moved = call_clone(grad)
        replace_array(moved, array)
        grads[0] = moved


def _first(grads: list[TensorBase | None]) -> TensorBase:
    grad = grads[0]
    assert grad is not None
    return grad


def _own(grads: list[TensorBase | None], variable: TensorBase, others: i64) -> TensorBase:
    """A gradient that may be written to later: the one that arrived if nothing else refers to it.

    As in PyTorch, hooks after the node may: what they get is then the leaf's gradient itself.

    With a graph being recorded, the gradient stays part of it, as a copy.
    """
    state = current_state()
    if state.grad_enabled:
        return _copy_like(_first(grads), variable)
    if _first(grads)._keyset & FORWARD_AD_BIT:
        # As in PyTorch, it has no tangent then.
        return detached(call_clone(_first(grads)))
    # Checked before a local variable refers to the gradient, too.
    alone = is_unshared(grads, 0, others)
    grad = _first(grads)
    if alone and not state.grad_layout:
        return grad
    fits = _has_layout_of(grad, variable)
    return grad if alone and fits else _with_layout_of(grad, variable, fits)


def _has_layout_of(grad: TensorBase, variable: TensorBase) -> bool:
    """Whether the gradient's steps through memory are those it should have.

    Any will do where the variable lost dimensions since it was used. Where it was given some, the
    steps of the first ones count, as in PyTorch.
    """
    if len(sizes_of(grad)) > len(sizes_of(variable)):
        return True
    if len(sizes_of(grad)) < len(sizes_of(variable)):
        wanted = _layout_for(variable)[: len(sizes_of(grad))]
        return _has_steps(grad, wanted)
    if len(sizes_of(grad)) < 2:
        return True
    if is_row_major_in_numpy(variable):
        if is_row_major_in_numpy(grad):
            return True
    elif getattr(grad._backend_array, "strides", None) == getattr(
        variable._backend_array, "strides", None
    ):
        return True
    if grad.device is not variable.device:
        return False
    return _has_steps(grad, _layout_for(variable))


def _has_steps(grad: TensorBase, wanted: tuple[int, ...]) -> bool:
    """Whether the gradient's steps are these, where it has more than one element."""
    return all(
        size == 1 or step == want
        for size, step, want in zip(sizes_of(grad), strides(grad), wanted, strict=True)
    )


def _layout_for(variable: TensorBase) -> tuple[int, ...]:
    """The variable's steps if they reach every element of its memory once; else row-major ones."""
    sizes = sizes_of(variable)
    steps = strides(variable)
    return steps if is_dense(sizes, steps) else contiguous_strides(sizes)


def _with_layout_of(grad: TensorBase, variable: TensorBase, fits: bool) -> TensorBase:
    """A copy of the gradient in the variable's memory layout; `fits` if it has that layout
    already."""
    if grad._keyset & (FUNCTIONALIZE_BIT | MATH_BITS) == FUNCTIONALIZE_BIT:
        # Its array is never written to, so a new tensor around it is sufficient.
        return make_tensor(grad._backend_array, grad.dtype, grad.device, grad._keyset)
    if fits or grad.dtype is not variable.dtype:
        return call_clone(grad)
    if is_row_major_in_numpy(variable):
        row_major = len(sizes_of(grad)) == len(sizes_of(variable))
    else:
        row_major = _layout_for(variable) == contiguous_strides(sizes_of(grad))
    if row_major:
        return call_clone(grad, contiguous_format)
    return _copy_like(grad, variable)


def _copy_like(grad: TensorBase, variable: TensorBase) -> TensorBase:
    if grad._keyset & FUNCTIONALIZE_BIT:
        return call_clone(grad)
    copy: TensorBase = operators["empty_strided"](
        sizes_of(variable), _layout_for(variable), dtype=grad.dtype, device=grad.device
    )
    put_where(copy, variable)
    operators["copy_"](copy, grad)
    # Nothing else refers to it yet, so its count of writes starts again.
    copy._shared_storage = None
    return copy
