"""Makes dual tensors, and gives their tangents and primals.

The tangent of a view is found at its base, if it has none of its own: see `forward_kernel.py`.
"""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from plugrad.dispatch import keys
from plugrad.dispatch.local_state import current_state
from plugrad.graph.former_geometry import follow_base
from plugrad.graph.history import next_sequence_nr, set_history
from plugrad.graph.node import Node
from plugrad.graph.support import name_node_class, operators
from plugrad.tensor.aliasing.layout import strides
from plugrad.tensor.base import TensorBase, needs_grad, sizes_of
from plugrad.tensor.dual import ForwardLevel, Tangent, attach_tangent, own_tangent
from plugrad.tensor.math_bits import math_bits
from plugrad.tensor.views import PRIMAL_ONLY, ViewInfo, ViewStep, replay_view, steps_up_to


def find_tangent(tensor: TensorBase) -> Tangent | None:
    """A tensor's tangent; for a view, possibly derived from its base, if a write gave it a
    tangent."""
    tangent = own_tangent(tensor)
    if tangent is not None:
        return tangent
    view = tensor._view_info
    if view is None:
        return None
    above = own_tangent(view.base)
    if above is None or not shares_tangent(view):
        return None
    state = current_state()
    kept = state.kept
    state.kept = kept & ~keys.FORWARD_AD_BIT
    try:
        lay_out(view.base)
        attach_tangent(tensor, replayed(view, value_of(view.base)), above.level)
    finally:
        state.kept = kept
    return own_tangent(tensor)


def tangent_of(tensor: TensorBase) -> TensorBase | None:
    """The tangent of a dual tensor, or None; there are none while forward mode is off."""
    if current_state().kept & keys.FORWARD_AD_BIT == 0:
        return None
    tangent = find_tangent(tensor)
    return None if tangent is None else tangent.value


def level_of(tensor: TensorBase) -> ForwardLevel | None:
    """The level of a dual tensor, or None."""
    tangent = find_tangent(tensor)
    return None if tangent is None else tangent.level


def dual(primal: TensorBase, tangent: TensorBase, level: ForwardLevel) -> TensorBase:
    """A view of `primal` with a tangent: `tangent` itself, or a copy if its memory layout differs.

    Args:
        primal: floating point or complex, without a tangent.
        tangent: of the same shape, without a tangent.

    Raises:
        RuntimeError: one of them is a dual tensor, or the shapes differ.
    """
    if find_tangent(primal) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            "same level 0 is not supported."
        )
    if find_tangent(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not "
            "supported."
        )
    check_sizes(primal, tangent)
    state = current_state()
    kept = state.kept
    state.kept = kept & ~keys.FORWARD_AD_BIT
    try:
        made: TensorBase = operators["view"](primal, sizes_of(primal))
        attach_tangent(made, tangent, level)
        lay_out(made)
    finally:
        state.kept = kept
    return made


def primal_of(tensor: TensorBase) -> TensorBase:
    """A view of a dual tensor that has no tangent."""
    state = current_state()
    kept = state.kept
    state.kept = kept & ~keys.FORWARD_AD_BIT
    try:
        made: TensorBase = operators["alias"](tensor)
    finally:
        state.kept = kept
    view = made._view_info
    if view is not None:
        last = view.last
        view.last = ViewStep(last.before, last.op, last.arguments, PRIMAL_ONLY)
    if state.grad_enabled and needs_grad(tensor):
        meta = made._autograd_meta
        assert meta is not None
        former = meta.grad_fn
        assert former is not None
        node = Identity(next_sequence_nr())
        node._set_next_edges(former._next_edges)
        set_history(made, node)
    return made


@final
class Identity(Node):
    """Gradient of taking the primal of a dual tensor."""

    def name(self) -> str:
        return "Identity"

    def apply(self, grads: list[TensorBase | None]) -> list[TensorBase | None]:
        return [grads[0]]


def shares_tangent(view: ViewInfo) -> bool:
    """Whether a view's tangent is a view of its base's: not if it is of an unpacked primal."""
    return not view.last.primal_only


def check_sizes(tensor: TensorBase, tangent: TensorBase) -> None:
    """RuntimeError if a tangent has not the shape of its tensor."""
    if sizes_of(tensor) != sizes_of(tangent):
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            "Tensor, this is not supported. Tensor is of size "
            f"{list(sizes_of(tensor))} while the given forward gradient is of size "
            f"{list(sizes_of(tangent))}."
        )


def replayed(view: ViewInfo, tangent: TensorBase) -> TensorBase:
    follow_base(view)
    return replay_view(steps_up_to(view.last), tangent, 0)


def value_of(tensor: TensorBase) -> TensorBase:
    tangent = own_tangent(tensor)
    assert tangent is not None
    return tangent.value


def lay_out(tensor: TensorBase) -> None:
    """Give a tensor's tangent the tensor's memory layout, so that the same views exist."""
    tangent = own_tangent(tensor)
    if tangent is None:
        return
    if math_bits(tensor) != math_bits(tangent.value):
        tangent.value = _with_bits(tangent.value, math_bits(tensor))
    if tensor._keyset & keys.FUNCTIONALIZE_BIT:
        return
    value = tangent.value
    if value._keyset & keys.TRANSFORMS_BIT:
        # It may be a batch of tangents, which has a layout of its own.
        return
    steps = strides(tensor)
    if steps == strides(value):
        return
    sizes = sizes_of(tensor)
    for size, step in zip(sizes, steps, strict=True):
        if size > 1 and step == 0:
            # Its elements share memory, which is not allowed for a tangent that is written to.
            return
    laid_out: TensorBase = operators["empty_strided"](
        sizes, steps, dtype=value.dtype, device=value.device
    )
    place: TensorBase = _toggled(laid_out, math_bits(value))
    operators["copy_"](place, value)
    tangent.value = place


def _with_bits(value: TensorBase, bits: i64) -> TensorBase:
    """A copy with elements that still have to be conjugated or negated, according to `bits`."""
    stored: TensorBase = operators["clone"](value)
    if bits & keys.CONJUGATE_BIT and value.dtype.is_complex:
        stored = operators["conj_physical"](stored)
    if bits & keys.NEGATIVE_BIT:
        stored = operators["neg"](stored)
    return _toggled(stored, bits)


def _toggled(tensor: TensorBase, bits: i64) -> TensorBase:
    """The view of a tensor without bits that has these."""
    if bits & keys.CONJUGATE_BIT and tensor.dtype.is_complex:
        tensor = operators["_conj"](tensor)
    if bits & keys.NEGATIVE_BIT:
        tensor = operators["_neg_view"](tensor)
    return tensor


name_node_class(Identity, "Identity")
