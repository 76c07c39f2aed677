"""Views and writes on immutable arrays, with the same results as on shared memory.

Tensors that would share memory share a `Cell`. It holds one array, which belongs to the base of all
of them. Each tensor stores the operators that lead from there to itself. A write to one puts a new
array into the cell, with the tensor's new elements in their place, and every other tensor of the
cell reads its elements from there again.

    x = zeros(3)        cell: [0 0 0]      x: no steps
    v = x[1:]                              v: slice(0, 1)
    v.add_(1)           cell: [0 1 1]      x and v follow

The cell's array, row by row, is also the memory that strides count in: the same steps on the device
`meta` give a view's layout in it, and `as_strided` starts from the cell's array for any view.

Tensors on such a backend carry the Functionalize key. It is above the dense kernels, so views are
handled in inference mode and inside decompositions, too.
"""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i64

from plugrad.dispatch import keys
from plugrad.dispatch.backends.active import find_backend
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import Operator
from plugrad.dtype import DType
from plugrad.tensor.aliasing.array_log import note_array
from plugrad.tensor.aliasing.cells import ENTERING, Alias, Cell, Layout, alias_of, enter, leave
from plugrad.tensor.aliasing.placement import placed_like
from plugrad.tensor.aliasing.strides import contiguous_strides
from plugrad.tensor.aliasing.write_back import Step, named_step, put_back, single_step
from plugrad.tensor.base import (
    TensorBase,
    keyset_without_tangent,
    make_tensor,
    numel_of,
    replace_array,
    set_alias_listener,
    share_storage,
    sizes_of,
    whole_numbers,
)
from plugrad.tensor.meta.array import MetaArray
from plugrad.tensor.views import AS_STRIDED, replay_view


def join(tensor: TensorBase, source: TensorBase, step: Step | None, read: Any) -> None:
    """Put a tensor into the cell of `source`, from which `step` leads to it; None: it is equal.

    `read` is the array of `source` from which it was made.
    """
    with ENTERING:
        place = alias_of(source)
        if place is None:
            note_array(source)
            place = enter(source, Cell(source._backend_array))
    known = alias_of(tensor)
    if known is not None and known.cell is place.cell:
        return
    with place.cell.lock:
        made = enter(tensor, place.cell)
        made.follow(place, step)
        if source._backend_array is not read:
            # Another thread wrote since the view was taken.
            replace_array(tensor, _replayed(made, tensor)._backend_array)


def repeats_elements(tensor: TensorBase) -> bool:
    """Whether some of the tensor's elements would share a place in memory."""
    place = alias_of(tensor)
    if place is None or not place.repeats:
        return False
    sizes = sizes_of(tensor)
    if 0 in sizes:
        return False
    for size, stride in zip(sizes, layout_of(tensor)[0], strict=True):
        if stride == 0 and size > 1:
            return True
    return False


def is_ordered(tensor: TensorBase) -> bool:
    """Whether a tensor has all elements of its memory, in their order."""
    place = alias_of(tensor)
    return place is None or place.ordered


def layout_of(tensor: TensorBase) -> Layout:
    """The strides and the offset that a tensor would have in memory."""
    place = alias_of(tensor)
    if place is None or place.ordered:
        return contiguous_strides(sizes_of(tensor)), 0
    layout = place.layout
    if layout is None:
        layout = _layout(tensor, place.cell, place.steps)
        place.layout = layout
    return layout


def _layout(tensor: TensorBase, cell: Cell, steps: list[Step]) -> Layout:
    """The layout after `steps` in a memory that holds the cell's array, row by row. It is computed
    by the same operators on arrays without elements."""
    dtype = _dtype_of(tensor, cell.array)
    found = replay_on_meta(
        steps, MetaArray(whole_numbers(cell.array.shape, cell.array), dtype), dtype
    )
    return tuple(found.strides), found.offset


def replay_on_meta(steps: list[Step], array: MetaArray, dtype: DType) -> MetaArray:
    """What view operators make of an array without elements."""
    meta = find_backend("meta")
    root = make_tensor(array, dtype, meta.device(None), meta.tensor_keyset)
    state = current_state()
    kept = state.kept
    trace = state.trace
    # The levels of transforms do not matter here, either.
    state.kept = kept & ~(keys.AUTOGRAD_KEYS | keys.TRANSFORMS_BIT)
    state.trace = None
    try:
        found: MetaArray = replay_view(steps, root, 0)._backend_array
    finally:
        state.kept = kept
        state.trace = trace
    return found


def memory_of(tensor: TensorBase) -> Any:
    """The array that represents the memory behind a tensor."""
    place = alias_of(tensor)
    return tensor._backend_array if place is None else place.cell.array


def group_of(tensor: TensorBase) -> object:
    """What is the same object for tensors that would share memory, and only for these."""
    place = alias_of(tensor)
    return tensor if place is None else place.cell


def take_over(tensor: TensorBase, source: TensorBase) -> None:
    """Give a tensor the array of another one, and make them share writes."""
    if tensor._keyset & keys.FUNCTIONALIZE_BIT:
        note_array(tensor)
        leave(tensor)
    replace_array(tensor, source._backend_array)
    if source._keyset & keys.FUNCTIONALIZE_BIT:
        join(tensor, source, None, tensor._backend_array)


def rebind(target: TensorBase, array: Any) -> None:
    """Make `array`, of the target's shape and dtype, the target's elements, for all that share
    them."""
    array = placed_like(array, target._backend_array)
    place = alias_of(target)
    if place is None:
        note_array(target)
        replace_array(target, array)
        return
    cell = place.cell
    state = current_state()
    kept = state.kept
    # As in a decomposition: what is called here is not recorded, nor are its views noticed.
    state.kept = kept & ~(keys.AUTOGRAD_KEYS | keys.FUNCTIONALIZE_BIT)
    try:
        with cell.lock:
            members = list(cell.members.values())
            if state.array_log is not None:
                for member in members:
                    found = member.ref()
                    if found is not None:
                        note_array(found)
            if place.steps:
                steps = _steps_of_write(target, place)
                root = put_back(_like(target, cell.array), steps, _like(target, array))
                cell.array = placed_like(root._backend_array, cell.array)
            else:
                cell.array = array
            for member in members:
                if member is place:
                    continue
                tensor: TensorBase | None = member.ref()
                if tensor is None:
                    continue
                if member.steps is place.steps:
                    replace_array(tensor, array)
                else:
                    replace_array(tensor, _replayed(member, tensor)._backend_array)
            replace_array(target, array)
    finally:
        state.kept = kept


def _steps_of_write(target: TensorBase, place: Alias) -> list[Step]:
    """What a write takes backwards: where elements may repeat, places in memory.

    In `x.expand(2, 3)[0]` is each element once; it is `expand` that cannot be taken backwards.
    """
    if place.repeats:
        for step in place.steps:
            if step[0].namespace != "plugrad":
                return place.steps
        strides, offset = layout_of(target)
        memory = _to_memory(place, target)
        return [*memory, named_step(AS_STRIDED, (sizes_of(target), strides, offset, (), 0))]
    return place.steps


def _replayed(place: Alias, tensor: TensorBase) -> TensorBase:
    """A tensor with the elements that the cell's array has for a place."""
    root = _like(tensor, place.cell.array)
    state = current_state()
    kept = state.kept
    state.kept = kept & ~(keys.AUTOGRAD_KEYS | keys.FUNCTIONALIZE_BIT)
    try:
        return replay_view(place.steps, root, 0)
    finally:
        state.kept = kept


def extend(target: TensorBase, view: TensorBase) -> None:
    """Make a tensor a view of itself: the one that an operator such as `t` just gave."""
    note_array(target)
    place = alias_of(target)
    other = alias_of(view)
    if place is not None and other is not None:
        place.follow(other, None)
        if place.ordered and len(place.cell.members) <= 2:
            # The cell has only the tensor and this view, which nothing else uses, so nothing is
            # shared.
            leave(target)
    replace_array(target, view._backend_array)


def _like(tensor: TensorBase, array: Any) -> TensorBase:
    # Cells hold arrays as they are, whichever of their tensors are to be conjugated.
    keyset = keyset_without_tangent(tensor) & ~keys.MATH_BITS
    return make_tensor(array, _dtype_of(tensor, array), tensor.device, keyset)


def _dtype_of(tensor: TensorBase, array: Any) -> DType:
    """The dtype of an array that `tensor` represents."""
    if tensor._keyset & keys.TRANSFORMS_BIT:
        own: DType = array.dtype
        return own
    return find_backend(tensor.device.type).backend.dtype_of(array)


@final
class FunctionalViewKernel:
    """Functionalize of a view operator: the result joins the cell of its input."""

    def __init__(self, op: Operator) -> None:
        self.op = op
        self.strided: bool = op.name == AS_STRIDED

    def __call__(self, keyset: i64, source: TensorBase, *args: Any) -> Any:
        below = keyset & keys.AFTER_FUNCTIONALIZE
        state = current_state()
        layout: Layout | None = None
        place = alias_of(source)
        if place is not None and not place.ordered:
            if self.strided:
                return self._take_strided(below, source, place, args)
            if self.op.name == "view":
                # It may be that no strides give that shape; then this raises.
                layout = _layout(source, place.cell, [*place.steps, (self.op, args, -1)])
        read = source._backend_array
        if state.trace is not None:
            out = state.trace.dispatch("redispatch", self.op, below, (source, *args))
        else:
            out = self.op.lookup(below)(below, source, *args)
        if isinstance(out, TensorBase):
            if out is not source:
                self._join(out, source, (self.op, args, -1), read)
                if layout is not None:
                    made = alias_of(out)
                    if made is not None:
                        made.layout = layout
        else:
            for position, item in enumerate(out):
                self._join(item, source, single_step((self.op, args, position)), read)
        return out

    def _join(self, out: TensorBase, source: TensorBase, step: Step, read: Any) -> None:
        out._shared_storage = share_storage(source)
        join(out, source, step, read)

    def _take_strided(
        self, below: i64, source: TensorBase, place: Alias, args: tuple[Any, ...]
    ) -> TensorBase:
        """Strides count in the memory, not in the view's elements."""
        steps = _to_memory(place, source)
        state = current_state()
        kept = state.kept
        state.kept = kept & ~(keys.AUTOGRAD_KEYS | keys.FUNCTIONALIZE_BIT)
        try:
            memory = replay_view(steps, _like(source, place.cell.array), 0)
        finally:
            state.kept = kept
        own = (*args[:3], contiguous_strides(sizes_of(memory)), 0)
        out: TensorBase = self.op.lookup(below)(below, memory, *own)
        out._shared_storage = share_storage(source)
        with place.cell.lock:
            made = enter(out, place.cell)
            made.steps = [*steps, (self.op, own, -1)]
            made.ordered = False
            made.repeats = True
            made.layout = (tuple(args[1]), args[2])
        return out


def _to_memory(place: Alias, source: TensorBase) -> list[Step]:
    """Steps to the whole memory of a cell, in numbers of the dtype that `source` has."""
    steps: list[Step] = []
    for step in place.steps:
        name = step[0].name
        if name in _OTHER_ELEMENTS:
            steps.append(step)
    if not steps:
        return steps
    # Such views are rare, and `view_as_complex` requires a last dimension of 2.
    root = _like(source, place.cell.array)
    found: list[Step] = []
    conjugated = False
    negated = False
    complex_ = root.dtype.is_complex
    count = numel_of(root)
    itemsize = root.dtype.itemsize
    for op, arguments, _ in steps:
        if op.name == "_conj":
            conjugated = not conjugated
        elif op.name == "_neg_view":
            negated = not negated
        elif op.name == "view_as_complex":
            count //= 2
            itemsize *= 2
            complex_ = True
            found.append(named_step("view", ((count, 2),)))
            found.append((op, arguments, -1))
        elif op.name == "_view_dtype":
            old, new = itemsize, arguments[0].itemsize
            found.append(named_step("view", ((count,),)))
            rest = count * old % new // old
            if rest:
                # What is left at the end is in no view of that dtype.
                count -= rest
                found.append(named_step("slice.Tensor", (0, 0, count, 1)))
            found.append((op, arguments, -1))
            count = count * old // new
            itemsize = new
            complex_ = arguments[0].is_complex
        elif complex_:
            count *= 2
            itemsize //= 2
            complex_ = False
            if conjugated and op.name == "imag":
                negated = not negated
            conjugated = False
            found.append(named_step("view_as_real", ()))
    if conjugated:
        found.append(named_step("_conj", ()))
    if negated:
        found.append(named_step("_neg_view", ()))
    return found


# They change the dtype, or the elements; the latter are steps at levels only, where arrays are
# tensors that may have bits.
_OTHER_ELEMENTS: Final = frozenset(
    ("real", "imag", "view_as_real", "view_as_complex", "_view_dtype", "_conj", "_neg_view")
)


def make_functional_view(op: Operator) -> Any:
    """The Functionalize kernel of an operator; None for those that return no view."""
    if not op.schema.is_view or op.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD) is not None:
        return None
    return FunctionalViewKernel(op)


def _note_alias(tensor: TensorBase, source: TensorBase) -> None:
    join(tensor, source, None, tensor._backend_array)


set_alias_listener(_note_alias)
