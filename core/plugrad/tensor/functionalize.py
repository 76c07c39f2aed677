"""Views and writes on arrays that cannot be written to, with the results that memory would give.

Tensors that would share memory share a `Cell`, which holds one array: that of the tensor which
they are all views of. Each knows the operators that lead from there to itself. Writing to one
puts a new array into the cell, with the new elements where that tensor has its own, and every
other tensor of the cell takes its elements from there anew.

    x = zeros(3)        cell: [0 0 0]      x: no steps
    v = x[1:]                              v: slice(0, 1)
    v.add_(1)           cell: [0 1 1]      x and v follow

Tensors on such a backend carry the Functionalize key. It is above the dense kernels, so views
are noticed in inference mode and inside of decompositions, too.
"""

from __future__ import annotations

import math
import threading
import weakref
from typing import Any, Final, final

import numpy as np
from mypy_extensions import i64

from plugrad.dispatch import keys
from plugrad.dispatch.active_backends import find_backend
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import Operator, find_operator
from plugrad.dtype import dtype_by_name
from plugrad.tensor.base import (
    TensorBase,
    make_tensor,
    replay_view,
    set_alias_listener,
    share_storage,
    sizes_of,
)

# Operator, its arguments after the first, and which of several results (-1: there is one).
Step = tuple[Operator, tuple[Any, ...], int]


@final
class Cell:
    """What a group of tensors has instead of common memory.

    Attributes:
        array: that of the tensor which all others are views of, whether it lives or not.
        members: the tensors of the group that live, by id.
        lock: held while the array is replaced.
    """

    def __init__(self, array: Any) -> None:
        self.array: Any = array
        self.members: dict[int, Alias] = {}
        self.lock: Any = threading.RLock()


@final
class Alias:
    """A tensor's place in a cell.

    Attributes:
        steps: what leads to it from the cell's array.
        repeats: whether some of its elements are the same one, as after `expand`.
    """

    def __init__(self, tensor: TensorBase, cell: Cell, steps: list[Step], repeats: bool) -> None:
        self.key: int = id(tensor)
        self.cell = cell
        self.steps = steps
        self.repeats = repeats
        self.ref: Any = weakref.ref(tensor, self.forget)

    def forget(self, ref: Any) -> None:
        """The tensor is gone."""
        self.cell.members.pop(self.key, None)
        if _aliases.get(self.key) is self:
            del _aliases[self.key]


# Only tensors that have views, or are such, are in here.
_aliases: Final[dict[int, Alias]] = {}


def alias_of(tensor: TensorBase) -> Alias | None:
    """The tensor's place in a cell; None if it shares nothing."""
    found = _aliases.get(id(tensor))
    if found is None or found.ref() is not tensor:
        return None
    return found


def join(tensor: TensorBase, source: TensorBase, step: Step | None) -> None:
    """Put a tensor into the cell of `source`, from which `step` leads to it; None: it is equal."""
    place = alias_of(source)
    if place is None:
        place = _enter(source, Cell(source.array), [], False)
    known = alias_of(tensor)
    if known is not None and known.cell is place.cell:
        return
    repeats = place.repeats
    steps = place.steps
    if step is not None:
        steps = [*steps, step]
        repeats = repeats or (
            step[0].name == "expand" and math.prod(sizes_of(tensor)) > math.prod(sizes_of(source))
        )
    _enter(tensor, place.cell, steps, repeats)


def repeats_elements(tensor: TensorBase) -> bool:
    """Whether some of the tensor's elements would be one place in memory."""
    place = alias_of(tensor)
    return place is not None and place.repeats


def has_own_order(tensor: TensorBase) -> bool:
    """Whether a view does not have its base's elements, all of them and in their order.

    What goes by strides is not defined for it: its array has none.
    """
    place = alias_of(tensor)
    if place is not None:
        for step in place.steps:
            if step[0].name not in _SAME_ELEMENTS:
                return True
    return False


def leave(tensor: TensorBase) -> None:
    """Take a tensor out of its cell: what is written to the others concerns it no longer."""
    place = alias_of(tensor)
    if place is not None:
        place.forget(None)


def take_over(tensor: TensorBase, source: TensorBase) -> None:
    """Let a tensor have the array of another one, and share what is written to either."""
    if tensor.keyset & keys.FUNCTIONALIZE_BIT:
        leave(tensor)
    tensor.replace_array(source.array)
    if source.keyset & keys.FUNCTIONALIZE_BIT:
        join(tensor, source, None)


def _enter(tensor: TensorBase, cell: Cell, steps: list[Step], repeats: bool) -> Alias:
    made = Alias(tensor, cell, steps, repeats)
    _aliases[made.key] = made
    cell.members[made.key] = made
    return made


def rebind(target: TensorBase, array: Any) -> None:
    """Make `array`, of the target's shape and dtype, the target's elements, for all that share
    them."""
    place = alias_of(target)
    if place is None:
        target.replace_array(array)
        return
    cell = place.cell
    state = current_state()
    kept = state.kept
    # As in a decomposition: what is called here is not recorded, nor are its views noticed.
    state.kept = kept & ~(keys.AUTOGRAD_KEYS | keys.FUNCTIONALIZE_BIT)
    try:
        with cell.lock:
            root = _like(target, cell.array)
            new_root = _put_back(root, place.steps, _like(target, array))
            cell.array = new_root.array
            for member in list(cell.members.values()):
                tensor = member.ref()
                if tensor is not None and tensor is not target:
                    tensor.replace_array(replay_view(member.steps, new_root, 0).array)
            target.replace_array(array)
    finally:
        state.kept = kept


def extend(target: TensorBase, step: Step, array: Any) -> None:
    """Let an operator such as `t_` take a tensor one step further from what it shares."""
    place = alias_of(target)
    if place is not None:
        place.steps = [*place.steps, step]
    target.replace_array(array)


def _like(tensor: TensorBase, array: Any) -> TensorBase:
    backend = find_backend(tensor.device.type).backend
    return make_tensor(array, backend.dtype_of(array), tensor.device, tensor.keyset)


def _put_back(root: TensorBase, steps: list[Step], value: TensorBase) -> TensorBase:
    """The root with other elements where `steps` lead to."""
    sources = [root]
    for step in steps:
        sources.append(replay_view([step], sources[-1], 0))
    for position in range(len(steps) - 1, -1, -1):
        value = _invert(steps[position], sources[position], value)
    return value


def _invert(step: Step, source: TensorBase, value: TensorBase) -> TensorBase:
    """`source` with `value` for what one step takes from it."""
    op, arguments, _ = step
    name = op.name
    if name in _SAME_ELEMENTS:
        return _call("reshape", value, sizes_of(source))
    if name == "permute":
        dims = [int(dim) % len(arguments[0]) for dim in arguments[0]]
        return _call("permute", value, tuple([dims.index(i) for i in range(len(dims))]))
    if name in _OWN_INVERSE:
        result: TensorBase = op(value, *arguments)
        return result
    if name == "real":
        return _call("complex", value, _call("imag", source))
    if name == "imag":
        return _call("complex", _call("real", source), value)
    if name == "view_as_real":
        return _call("view_as_complex", value)
    if name == "view_as_complex":
        return _call("view_as_real", value)
    # Which elements does the step take? It tells when it is given their numbers.
    count = source.numel()
    active = find_backend(source.device.type)
    numbers = active.backend.from_host(
        np.arange(count, dtype=np.int64).reshape(sizes_of(source)), source.device.index or 0
    )
    long = dtype_by_name("int64")
    numbered = make_tensor(numbers, long, source.device, source.keyset)
    places = replay_view([step], numbered, 0)
    flat = _call(
        "scatter.src",
        _call("reshape", source, (count,)),
        0,
        _call("reshape", places, (value.numel(),)),
        _call("reshape", value, (value.numel(),)),
    )
    return _call("reshape", flat, sizes_of(source))


_SAME_ELEMENTS: Final = frozenset(("view", "squeeze", "unsqueeze", "detach", "alias"))
_OWN_INVERSE: Final = frozenset(("transpose", "t"))


def _call(name: str, *args: Any) -> TensorBase:
    op = find_operator("plugrad::" + name)
    assert op is not None
    result: TensorBase = op(*args)
    return result


@final
class FunctionalViewKernel:
    """Functionalize of a view operator: the result joins the cell of its input."""

    def __init__(self, op: Operator) -> None:
        self.op = op

    def __call__(self, keyset: i64, source: TensorBase, *args: Any) -> Any:
        below = keyset & keys.AFTER_FUNCTIONALIZE
        state = current_state()
        if state.trace is not None:
            out = state.trace.dispatch("redispatch", self.op, below, (source, *args))
        else:
            out = self.op.lookup(below)(below, source, *args)
        if isinstance(out, TensorBase):
            if out is not source:
                self._join(out, source, (self.op, args, -1))
        else:
            for position, item in enumerate(out):
                self._join(item, source, (self.op, args, position))
        return out

    def _join(self, out: TensorBase, source: TensorBase, step: Step) -> None:
        out.storage = share_storage(source)
        join(out, source, step)


def make_functional_view(op: Operator) -> Any:
    """The Functionalize kernel of an operator; None for those that return no view."""
    if not op.schema.is_view or op.kernel_for(keys.COMPOSITE_IMPLICIT_AUTOGRAD) is not None:
        return None
    return FunctionalViewKernel(op)


def _note_alias(tensor: TensorBase, source: TensorBase) -> None:
    join(tensor, source, None)


set_alias_listener(_note_alias)
