"""Connects tensors to the graph: gradient edges, histories, and the effect of in-place
operators."""

from __future__ import annotations

import weakref
from typing import Any, Final, final

from mypy_extensions import i32, i64

from plugrad.dispatch.local_state import current_state
from plugrad.dtype import FLOATING
from plugrad.graph.creation_errors import raise_view_modified
from plugrad.graph.node import NO_EDGE, Edge, Node
from plugrad.tensor.base import AutogradMeta, TensorBase, materialize_meta, needs_grad, version_of
from plugrad.tensor.views import CREATION_DEFAULT


@final
class _Factories:
    """Node classes of higher layers that this layer instantiates."""

    def __init__(self) -> None:
        self.accumulate_grad: Any = None
        self.copy_slices: Any = None
        self.view_of_base: Any = None


_factories: Final = _Factories()


def set_accumulate_grad_class(cls: Any) -> None:
    _factories.accumulate_grad = cls


def set_copy_slices_class(cls: Any) -> None:
    _factories.copy_slices = cls


def set_view_of_base(make: Any) -> None:
    _factories.view_of_base = make


def try_grad_accumulator(tensor: TensorBase) -> Node | None:
    """The AccumulateGrad node of a leaf if it is alive."""
    meta = tensor._autograd_meta
    if meta is None or meta.accumulator is None:
        return None
    node: Node | None = meta.accumulator()
    return node


def grad_accumulator(tensor: TensorBase) -> Node:
    """The AccumulateGrad node of a leaf; a new one if no graph keeps one alive."""
    node = try_grad_accumulator(tensor)
    if node is None:
        made: Node = _factories.accumulate_grad(tensor)
        materialize_meta(tensor).accumulator = weakref.ref(made)
        return made
    return node


def gradient_edge(tensor: TensorBase) -> Edge:
    """The edge that receives the gradient of a tensor; `NO_EDGE` if it requires none."""
    if tensor._view_info is not None:
        refresh_view(tensor)
    meta = tensor._autograd_meta
    if meta is None:
        return NO_EDGE
    node = meta.grad_fn
    if node is not None:
        return Edge(node, i64(meta.output_nr))
    if meta.requires_grad:
        return Edge(grad_accumulator(tensor), 0)
    return NO_EDGE


def link(node: Node, tensor: TensorBase) -> bool:
    """Connect the next output of a new node to the edge that receives a tensor's gradient;
    returns whether there is one."""
    if tensor._view_info is not None:
        refresh_view(tensor)
    meta = tensor._autograd_meta
    if meta is None:
        node._append_edge(None, 0)
        return False
    maker = meta.grad_fn
    if maker is not None:
        node._append_edge(maker, meta.output_nr)
        return True
    if meta.requires_grad:
        node._append_edge(grad_accumulator(tensor), 0)
        return True
    node._append_edge(None, 0)
    return False


def link_optional(node: Node, tensor: TensorBase | None) -> bool:
    """`link` for an argument that may be missing."""
    if tensor is None:
        node._append_edge(None, 0)
        return False
    return link(node, tensor)


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
    """Make `node` the grad_fn of a forward output. Gradients that are not needed may be missing.
    Integer outputs come after the others; they have no gradient and are not inputs of the node."""
    if tensor is None:
        node._add_input_metadata(None)
        return
    if tensor.dtype.category < FLOATING:
        return
    number = node._add_input_metadata(tensor)
    set_gradient_edge(tensor, node, number)


def set_gradient_edge(tensor: TensorBase, node: Node, input_nr: i64) -> None:
    """Make output `input_nr` of `node` the tensor's place in the graph; metadata is not added."""
    meta = tensor._autograd_meta
    if meta is None:
        meta = AutogradMeta()
        tensor._autograd_meta = meta
    meta.grad_fn = node
    meta.output_nr = i32(input_nr)
    view = tensor._view_info
    if view is not None:
        view.version = version_of(tensor)


def set_creation_meta(tensor: TensorBase, creation_meta: i64) -> None:
    """Store how a view was made, as one of the constants of `plugrad.tensor.base`; tensors that are
    not views stay as they are.

    A custom Function marks its outputs `IN_CUSTOM_FUNCTION`, or `MULTI_OUTPUT_NODE` if there are
    several: from then on `check_inplace` and `grad_fn_of` refuse recorded writes to them.
    """
    view = tensor._view_info
    if view is not None:
        view.creation_meta = creation_meta


def grad_fn_of(tensor: TensorBase) -> Node | None:
    """The tensor's grad_fn; a view's grad_fn is regenerated after in-place changes of its base.

    Raises:
        RuntimeError: a recorded operator wrote to the memory of this view, and it is of a kind that
            cannot be regenerated (made in no_grad mode, one of several, in a custom Function).

    >>> import plugrad
    >>> x = plugrad.ones(2, requires_grad=True)
    >>> x.grad_fn is None, (x * 2).grad_fn.name()
    (True, 'MulBackward0')
    """
    if tensor._view_info is not None:
        refresh_view(tensor)
    return None if tensor._autograd_meta is None else tensor._autograd_meta.grad_fn


def refresh_view(tensor: TensorBase) -> None:
    """Regenerate a view's grad_fn if its memory was written to since it was made."""
    view = tensor._view_info
    if view is None:
        return
    version = version_of(tensor)
    if view.version == version:
        return
    meta = tensor._autograd_meta
    former = None if meta is None else meta.grad_fn
    if former is None and not needs_grad(view.base):
        return
    if view.creation_meta != CREATION_DEFAULT:
        raise_view_modified(tensor, True)
    meta = materialize_meta(tensor)
    node: Node = _factories.view_of_base(tensor, view)
    move_hooks(meta, node, 0)
    meta.grad_fn = node
    meta.output_nr = 0
    view.version = version


def start_at_view(copy: TensorBase, view_tensor: TensorBase) -> None:
    """Make a copy of a view part of the graph as if the view had been taken anew: its gradient goes
    to the base, past the hooks of the view's grad_fn."""
    view = view_tensor._view_info
    assert view is not None
    node: Node = _factories.view_of_base(view_tensor, view)
    set_gradient_edge(copy, node, 0)


def check_inplace(tensor: TensorBase) -> None:
    """Whether a tensor may be written to by an operator that is recorded, because grad mode is on
    and the tensor or another argument requires grad.

    Raises:
        RuntimeError: it is a leaf that requires grad, a view of one, or a view that was made in
            no_grad or inference mode, in a custom Function, or together with others.
    """
    if tensor.dtype.category < FLOATING or not current_state().grad_enabled:
        return
    view = tensor._view_info
    if view is not None:
        if view.creation_meta != CREATION_DEFAULT:
            raise_view_modified(tensor, False)
        if needs_grad(tensor) and not has_grad_fn(view.base):
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place "
                "operation."
            )
    if needs_grad(tensor) and not has_grad_fn(tensor):
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )


def has_grad_fn(tensor: TensorBase) -> bool:
    """Whether the tensor has a grad_fn now; does not regenerate a view's."""
    meta = tensor._autograd_meta
    return meta is not None and meta.grad_fn is not None


def rebase_history(tensor: TensorBase, node: Node, position: i64 = 0) -> None:
    """Make `node` the grad_fn of a tensor that an in-place operator has just written to.

    The caller has called `check_inplace` before, has set the edges of `node` (number `position`
    leads to the former tensor), and has counted the write. If the tensor is a view, the write is
    one into its base: a CopySlices node, which takes `node` over, becomes the base's grad_fn, and
    the view's is made from there. Hooks stay with the former grad_fn; a retained gradient is the
    new one's.

    Raises:
        RuntimeError: the tensor is a view and `node` has other outputs.
    """
    if tensor.dtype.category < FLOATING:
        node._add_input_metadata(None)
        return
    view = tensor._view_info
    if view is None:
        number = node._add_input_metadata(tensor)
        _replace_grad_fn(tensor, node, number)
        return
    node._add_input_metadata(tensor)
    if node._num_inputs() != 1:
        raise RuntimeError("Functions which modify views in-place must return a single Variable")
    base = view.base
    slices: Node = _factories.copy_slices(base, view, node, position)
    slices._add_input_metadata(base)
    _replace_grad_fn(base, slices, 0)
    refresh_view(tensor)


def replace_history(tensor: TensorBase, node: Node) -> None:
    """Make `node` the grad_fn of a tensor that an in-place view operator, such as `t_`, changed.

    Nothing was written, so the base of a view keeps its own. Hooks, and the gradient that is
    retained, stay with the former grad_fn, and with the former shape.
    """
    if tensor.dtype.category < FLOATING:
        node._add_input_metadata(None)
        return
    materialize_meta(tensor).hooks = None
    set_gradient_edge(tensor, node, node._add_input_metadata(tensor))


def _replace_grad_fn(tensor: TensorBase, node: Node, number: i64) -> None:
    meta = materialize_meta(tensor)
    move_hooks(meta, node, number)
    set_gradient_edge(tensor, node, number)


def move_hooks(meta: AutogradMeta, node: Node, number: i64) -> None:
    """Move a tensor's hooks when it becomes output `number` of `node`.

    Its gradient hooks stay with the former node, or end if it was a leaf; hooks that are
    registered from now on are another dict. The gradient is retained at the new place from then on.
    """
    meta.hooks = None
    former = meta.grad_fn
    if former is None or former._node_hooks is None or not meta.retains_grad:
        return
    reference = former._node_hooks.retains_grad.pop(int(meta.output_nr), None)
    if reference is not None:
        node._ensure_hooks().retains_grad[int(number)] = reference
