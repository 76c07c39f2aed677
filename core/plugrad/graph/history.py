"""Tying tensors to the graph: gradient edges, histories, and what in-place operators do to them."""

from __future__ import annotations

import weakref
from typing import Any, Final, final

from mypy_extensions import i64

from plugrad.dispatch.local_state import current_state
from plugrad.dtype import FLOATING
from plugrad.graph.node import NO_EDGE, Edge, Node
from plugrad.tensor.base import AutogradMeta, TensorBase, materialize_meta, needs_grad, version_of


@final
class _Factories:
    """Node classes of higher floors that this one has to instantiate."""

    def __init__(self) -> None:
        self.accumulate_grad: Any = None
        self.copy_slices: Any = None


_factories: Final = _Factories()


def set_accumulate_grad_class(cls: Any) -> None:
    _factories.accumulate_grad = cls


def set_copy_slices_class(cls: Any) -> None:
    _factories.copy_slices = cls


def try_grad_accumulator(tensor: TensorBase) -> Node | None:
    """The AccumulateGrad node of a leaf if it is alive."""
    meta = tensor.meta
    if meta is None or meta.accumulator is None:
        return None
    node: Node | None = meta.accumulator()
    return node


def grad_accumulator(tensor: TensorBase) -> Node:
    """The AccumulateGrad node of a leaf; made anew when no graph keeps one alive."""
    node = try_grad_accumulator(tensor)
    if node is None:
        made: Node = _factories.accumulate_grad(tensor)
        materialize_meta(tensor).accumulator = weakref.ref(made)
        return made
    return node


def gradient_edge(tensor: TensorBase) -> Edge:
    """Where the gradient of a tensor goes; `NO_EDGE` if it requires none."""
    if tensor.view_info is not None:
        refresh_view(tensor)
    meta = tensor.meta
    if meta is None:
        return NO_EDGE
    node = meta.grad_fn
    if node is not None:
        return Edge(node, meta.output_nr)
    if meta.requires_grad:
        return Edge(grad_accumulator(tensor), 0)
    return NO_EDGE


def optional_edge(tensor: TensorBase | None) -> Edge:
    """`gradient_edge` for an argument that may be missing."""
    return NO_EDGE if tensor is None else gradient_edge(tensor)


def collect_next_edges(tensors: list[TensorBase | None]) -> tuple[Edge, ...]:
    """One edge per tensor, in order."""
    return tuple([optional_edge(tensor) for tensor in tensors])


def any_needs_grad(tensors: list[TensorBase]) -> bool:
    for tensor in tensors:  # noqa: SIM110  # needs no generator
        if needs_grad(tensor):
            return True
    return False


def optional_needs_grad(tensor: TensorBase | None) -> bool:
    return tensor is not None and needs_grad(tensor)


def next_sequence_nr() -> i64:
    """This thread's next node number."""
    state = current_state()
    number = state.sequence_nr
    state.sequence_nr = number + 1
    return number


def set_history(tensor: TensorBase | None, node: Node) -> None:
    """Make `node` the grad_fn of a forward output; integer outputs carry no gradient, and a
    gradient that nobody asked for may be missing."""
    if tensor is None or tensor.dtype.category < FLOATING:
        node.add_input_metadata(None)
        return
    number = node.add_input_metadata(tensor)
    set_gradient_edge(tensor, node, number)


def set_gradient_edge(tensor: TensorBase, node: Node, input_nr: i64) -> None:
    meta = tensor.meta
    if meta is None:
        meta = AutogradMeta()
        tensor.meta = meta
    meta.grad_fn = node
    meta.output_nr = input_nr
    view = tensor.view_info
    if view is not None:
        view.version = version_of(tensor)


def grad_fn_of(tensor: TensorBase) -> Node | None:
    """The tensor's grad_fn; that of a view follows in-place changes of its base."""
    if tensor.view_info is not None:
        refresh_view(tensor)
    return None if tensor.meta is None else tensor.meta.grad_fn


def refresh_view(tensor: TensorBase) -> None:
    """Make a view's grad_fn anew if its memory was written to since it was made."""
    view = tensor.view_info
    if view is None:
        return
    version = version_of(tensor)
    if view.version == version:
        return
    if tensor.dtype.category >= FLOATING and needs_grad(view.base):
        state = current_state()
        grad_enabled = state.grad_enabled
        state.grad_enabled = True
        try:
            again = view.replay(view.base)
        finally:
            state.grad_enabled = grad_enabled
        made = again.meta
        if made is not None and made.grad_fn is not None:
            meta = materialize_meta(tensor)
            meta.grad_fn = made.grad_fn
            meta.output_nr = made.output_nr
    view.version = version


def check_inplace(tensor: TensorBase) -> None:
    """Whether a tensor that takes part in the graph may be written to.

    Raises:
        RuntimeError: it is a leaf that requires grad, a view of one, or one of several views
            that a single operator returned.
    """
    if not current_state().grad_enabled:
        return
    view = tensor.view_info
    if view is not None:
        if _is_leaf_with_grad(view.base) or _is_leaf_with_grad(tensor):
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place "
                "operation."
            )
        if view.multi_output and needs_grad(tensor):
            raise RuntimeError(
                f"{_name_of(tensor)} is a view and is being modified inplace. This view is the "
                "output of a function that returns multiple views. Such functions do not allow the "
                "output views to be modified inplace. You should replace the inplace operation by "
                "an out-of-place one."
            )
        return
    if _is_leaf_with_grad(tensor):
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )


def _is_leaf_with_grad(tensor: TensorBase) -> bool:
    meta = tensor.meta
    return meta is not None and meta.requires_grad and meta.grad_fn is None


def _name_of(tensor: TensorBase) -> str:
    node = grad_fn_of(tensor)
    if node is None or tensor.meta is None:
        return "Output"
    return f"Output {int(tensor.meta.output_nr)} of {node.name()}"


def rebase_history(tensor: TensorBase, node: Node) -> None:
    """Make `node` the grad_fn of a tensor that an in-place operator has just written to.

    If the tensor is a view, the write is one into its base: a CopySlices node becomes the base's
    grad_fn, and the view's is made from there.
    """
    view = tensor.view_info
    if view is None:
        set_history(tensor, node)
        return
    base = view.base
    node.add_input_metadata(tensor)
    slices: Node = _factories.copy_slices(base, view, node)
    slices.add_input_metadata(base)
    meta = materialize_meta(base)
    meta.grad_fn = slices
    meta.output_nr = 0
    view.version = -1
    refresh_view(tensor)
