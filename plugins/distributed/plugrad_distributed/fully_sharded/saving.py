"""Parameters that are saved for backward: not their elements, but which parameter it was.

A graph would keep gathered parameters from forward to backward. While the forward of a module runs,
hooks replace what is saved of them by a note; backward looks the parameter up, which is gathered
again by then. Whatever else is saved goes to the hooks around, or is kept as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad.autograd.graph import saved_tensors_hooks
from plugrad.dispatch.local_state import current_state

__all__ = ["saving_notes"]

# Gives a gathered parameter by its number.
LookUp = Callable[[int], Tensor]


class _Note:
    """A gathered parameter, or a view of one."""

    def __init__(self, look_up: LookUp, index: int, tensor: Tensor) -> None:
        self.look_up = look_up
        self.index = index
        self.shape = tuple(tensor.shape)
        self.stride = tuple(tensor.stride())
        self.offset = tensor.storage_offset()

    def tensor(self) -> Tensor:
        whole = self.look_up(self.index)
        if (
            tuple(whole.shape) == self.shape
            and tuple(whole.stride()) == self.stride
            and whole.storage_offset() == self.offset
        ):
            return whole
        made: Tensor = plugrad.as_strided(whole, self.shape, self.stride, self.offset)
        return made


class _Kept:
    """Any other tensor, without its history, which the engine puts back."""

    def __init__(self, tensor: Tensor) -> None:
        self.saved = tensor.detach()
        self.version = tensor._version

    def tensor(self) -> Tensor:
        if self.saved._version != self.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: a tensor of shape {list(self.saved.shape)} is at version "
                f"{self.saved._version}; expected version {self.version} instead."
            )
        return self.saved


class _Outer:
    """What the hooks around made of a tensor."""

    def __init__(self, packed: Any, unpack: Callable[[Any], Any]) -> None:
        self.packed = packed
        self.unpack = unpack

    def tensor(self) -> Tensor:
        found: Tensor = self.unpack(self.packed)
        return found


@contextmanager
def saving_notes(tensors: Sequence[Tensor], look_up: LookUp) -> Iterator[None]:
    """Context manager: what is saved of some tensors, and of views of them, is a note.

    Args:
        look_up: gives such a tensor, by its number, when backward needs it.
    """
    state = current_state()
    if not plugrad.is_grad_enabled() or state.saved_tensor_hooks_error is not None:
        yield
        return
    around = state.saved_tensor_hooks
    outer = around[-1] if around else None
    # What shares their memory has their storage, which all of them have: they are detached.
    numbers = {id(tensor._shared_storage): index for index, tensor in enumerate(tensors)}
    dtypes = {tensor.dtype for tensor in tensors}

    def pack(tensor: Tensor) -> Any:
        index = numbers.get(id(tensor._shared_storage))
        if index is not None and tensor.dtype in dtypes:
            return _Note(look_up, index, tensor)
        if outer is not None:
            return _Outer(outer[0](tensor), outer[1])
        return _Kept(tensor)

    try:
        with saved_tensors_hooks(pack, lambda note: note.tensor()):
            yield
    finally:
        # Ids may become those of others.
        numbers.clear()
