"""Saves gathered parameters for backward as references instead of elements.

A graph would otherwise keep gathered parameters from forward to backward. While the forward of a
module runs, hooks replace saved parameters by a reference; backward looks up the parameter, which
is gathered again by then. Other saved tensors go to the enclosing hooks, or are saved as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad._C._autograd import (
    _make_saved_tensor,
    _pop_saved_tensors_default_hooks,
    _push_saved_tensors_default_hooks,
    _saved_tensors_hooks_is_enabled,
)
from plugrad.autograd.graph import saved_tensors_hooks
from plugrad_distributed.tensor.array import ShardedArray
from plugrad_distributed.tensor.backend import as_tensor
from plugrad_distributed.tensor.dtensor import array_of

__all__ = ["saving_notes"]

# Returns a gathered parameter by its number.
LookUp = Callable[[int], Tensor]


class _Note:
    """A gathered parameter, or a view of one; of a DTensor, this rank's part."""

    def __init__(self, look_up: LookUp, index: int, tensor: Tensor) -> None:
        self.look_up = look_up
        self.index = index
        self.array = array_of(tensor)
        if self.array is not None:
            tensor = self.array.local
            # The remaining fields only describe the tensor's layout.
            self.array = ShardedArray(
                plugrad.empty(0, dtype=tensor.dtype, device=tensor.device),
                *(self.array.mesh, self.array.placements, self.array.shape, self.array.steps),
            )
        self.shape = tuple(tensor.shape)
        self.stride = tuple(tensor.stride())
        self.offset = tensor.storage_offset()

    def unpack(self) -> Tensor:
        whole = self.look_up(self.index)
        if self.array is None:
            return self._view(whole)
        array = self.array
        local = self._view(_held(whole))
        return as_tensor(
            ShardedArray(local, array.mesh, array.placements, array.shape, array.steps)
        )

    def _view(self, whole: Tensor) -> Tensor:
        if (
            tuple(whole.shape) == self.shape
            and tuple(whole.stride()) == self.stride
            and whole.storage_offset() == self.offset
        ):
            return whole
        made: Tensor = plugrad.as_strided(whole, self.shape, self.stride, self.offset)
        return made


def _held(tensor: Tensor) -> Tensor:
    """This rank's part of a tensor."""
    array = array_of(tensor)
    return tensor if array is None else array.local


def _storage(tensor: Tensor) -> int:
    """A key for the memory that a tensor shares with others: they all share one version counter."""
    return id(getattr(tensor, "_shared_storage", None))


@contextmanager
def saving_notes(tensors: Sequence[Tensor], look_up: LookUp) -> Iterator[None]:
    """Context manager: some tensors and their views are saved as references.

    Args:
        tensors: results of `detach`, so that they share a version counter.
        look_up: returns such a tensor, by its number, when backward needs it.
    """
    if not plugrad.is_grad_enabled() or not _saved_tensors_hooks_is_enabled():
        yield
        return
    numbers = {_storage(_held(tensor)): index for index, tensor in enumerate(tensors)}
    dtypes = {tensor.dtype for tensor in tensors}

    def pack(tensor: Tensor) -> Any:
        index = numbers.get(_storage(_held(tensor)))
        if index is not None and tensor.dtype in dtypes:
            return _Note(look_up, index, tensor)
        # Save as without hooks. A leaf refers to no node, so it can be kept directly.
        _pop_saved_tensors_default_hooks()
        try:
            return _make_saved_tensor(tensor, is_output=not tensor.is_leaf)
        finally:
            _push_saved_tensors_default_hooks(pack, _unpack)

    try:
        with saved_tensors_hooks(pack, _unpack):
            yield
    finally:
        # Other objects may get the same ids later.
        numbers.clear()


def _unpack(saved: Any) -> Tensor:
    found: Tensor = saved.unpack()
    return found
