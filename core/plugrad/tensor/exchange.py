"""Replaces the arrays of tensors, for compilers that run a step of a program as a whole.

They trace a step: run it on placeholders for arrays, to see what it does. `Before` stores what a
tensor was before, and restores it. Then the program runs, and its results become the tensors'
arrays.
"""

from __future__ import annotations

from typing import Any, Final, final

from mypy_extensions import i32, i64

from plugrad.dispatch.keys import CONJUGATE_BIT, FUNCTIONALIZE_BIT, MATH_BITS, NEGATIVE_BIT
from plugrad.graph.node import Node
from plugrad.tensor.aliasing.array_log import FormerArray
from plugrad.tensor.aliasing.cells import alias_of, leave
from plugrad.tensor.aliasing.functionalize import rebind
from plugrad.tensor.base import (
    AutogradMeta,
    Storage,
    TensorBase,
    keyset_without_tangent,
    make_tensor,
    materialize_meta,
    needs_grad,
    replace_array,
    share_storage,
    version_of,
)
from plugrad.tensor.views import ViewInfo


@final
class Before:
    """What a tensor was at one time, with those that share its elements.

    Attributes:
        array: its array.
        grad: its gradient, or None.
        requires_grad: whether operations on it were recorded.
        version: how often it had been written to.
    """

    def __init__(self, tensor: TensorBase) -> None:
        self.tensor = tensor
        self.array: Any = tensor._backend_array
        self.former = FormerArray(tensor)
        self.dtype = tensor.dtype
        self.device = tensor.device
        self.keyset: i64 = tensor._keyset
        self.version: i64 = version_of(tensor)
        self.requires_grad: bool = needs_grad(tensor)
        self.shared: Storage | None = tensor._shared_storage
        self.view_info: ViewInfo | None = tensor._view_info
        meta = tensor._autograd_meta
        self.meta: AutogradMeta | None = meta
        self.grad: TensorBase | None = None if meta is None else meta.grad
        self.grad_fn: Node | None = None if meta is None else meta.grad_fn
        self.output_nr: i32 = 0 if meta is None else meta.output_nr
        self.leaf_flag: bool = meta is not None and meta.requires_grad
        self.retains_grad: bool = meta is not None and meta.retains_grad

    def stand_in(self, array: Any) -> None:
        """Replace the tensor's array, and the one that it shares with views."""
        replace_array(self.tensor, array)
        place = self.former.place
        if place is not None and not place.steps:
            place.cell.array = array

    def has_graph(self) -> bool:
        """Whether the tensor has a grad_fn now that it had not."""
        meta = self.tensor._autograd_meta
        return meta is not None and meta.grad_fn is not None and meta.grad_fn is not self.grad_fn

    def writes(self) -> int:
        """How often the tensor was written to since."""
        return int(version_of(self.tensor) - self.version)

    def restore(self) -> None:
        """Restore the tensor."""
        tensor = self.tensor
        self.former.restore()
        tensor.dtype = self.dtype
        tensor.device = self.device
        tensor._keyset = self.keyset
        storage = tensor._shared_storage
        if storage is not None:
            storage.version = self.version
        if self.shared is not None:
            tensor._shared_storage = self.shared
            self.shared.version = self.version
        tensor._view_info = self.view_info
        meta = tensor._autograd_meta
        if self.meta is not None:
            tensor._autograd_meta = self.meta
            meta = self.meta
        if meta is not None:
            meta.grad = self.grad
            meta.grad_fn = self.grad_fn
            meta.output_nr = self.output_nr
            meta.requires_grad = self.leaf_flag
            meta.retains_grad = self.retains_grad


def arrays_of(tensors: list[TensorBase]) -> list[Any]:
    """The tensors' arrays."""
    return [tensor._backend_array for tensor in tensors]


def cell_of(tensor: TensorBase) -> Any:
    """The cell that represents the memory that a tensor shares with others; None if it shares none.

    If all others are gone, the tensor leaves the cell.
    """
    if not tensor._keyset & FUNCTIONALIZE_BIT:
        return None
    place = alias_of(tensor)
    if place is None:
        return None
    if len(place.cell.members) == 1 and not place.steps:
        leave(tensor)
        return None
    return place.cell


def sharers(tensor: TensorBase) -> list[TensorBase]:
    """The other tensors that would share memory with one."""
    place = alias_of(tensor)
    found: list[TensorBase] = []
    if place is not None:
        for member in list(place.cell.members.values()):
            other: TensorBase | None = member.ref()
            if other is not None and other is not tensor:
                found.append(other)
    return found


def put_arrays(tensors: list[TensorBase], arrays: list[Any], writes: list[int]) -> None:
    """Write whole tensors: the first `len(tensors)` arrays become theirs, and each counts as a
    write. Whatever shares a tensor's elements follows."""
    for number, tensor in enumerate(tensors):
        array = arrays[number]
        if tensor._keyset & FUNCTIONALIZE_BIT and alias_of(tensor) is not None:
            rebind(tensor, array)
        else:
            tensor._backend_array = array
        count = writes[number]
        if count:
            share_storage(tensor).version += count


def put_gradients(tensors: list[TensorBase], arrays: list[Any]) -> None:
    """Give leaves new gradients, with these arrays."""
    for number, tensor in enumerate(tensors):
        keyset = keyset_without_tangent(tensor) & ~MATH_BITS
        grad = make_tensor(arrays[number], tensor.dtype, tensor.device, keyset)
        materialize_meta(tensor).grad = grad


def drop_gradients(tensors: list[TensorBase]) -> None:
    """Leave tensors without a gradient."""
    for tensor in tensors:
        meta = tensor._autograd_meta
        if meta is not None:
            meta.grad = None


# The result of `situation` for a tensor.
REQUIRES_GRAD: Final = 1
HAS_GRAD: Final = 2
IS_CONJ: Final = 4
IS_NEG: Final = 8


def situation(tensors: list[TensorBase]) -> list[int]:
    """For each tensor, what a step may depend on besides its elements: whether it requires grad,
    whether it has a gradient, and whether it is lazily conjugated or negated."""
    found: list[int] = []
    for tensor in tensors:
        meta = tensor._autograd_meta
        word = 0
        if meta is not None:
            if meta.grad is not None:
                word = HAS_GRAD
            if meta.requires_grad or meta.grad_fn is not None:
                word += REQUIRES_GRAD
        elif tensor._view_info is not None and needs_grad(tensor):
            word = REQUIRES_GRAD
        if tensor._keyset & MATH_BITS:
            if tensor._keyset & CONJUGATE_BIT:
                word += IS_CONJ
            if tensor._keyset & NEGATIVE_BIT:
                word += IS_NEG
        found.append(word)
    return found
