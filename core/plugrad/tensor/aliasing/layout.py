"""Where a tensor's elements are in memory: `stride()`, `storage_offset()`, `is_contiguous()`."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrad._intrinsics import array_strides
from plugrad.dispatch.backends.active import find_backend
from plugrad.dispatch.keys import FUNCTIONALIZE_BIT, TRANSFORMS_BIT
from plugrad.memory_format import MemoryFormat, contiguous_format
from plugrad.tensor.aliasing.functionalize import is_ordered, layout_of, replay_on_meta
from plugrad.tensor.aliasing.memory_layout import has_format
from plugrad.tensor.aliasing.strides import contiguous_strides
from plugrad.tensor.base import TensorBase, sizes_of, whole_numbers
from plugrad.tensor.levels import Wrapped
from plugrad.tensor.meta.array import MetaArray
from plugrad.tensor.views import ViewInfo, steps_up_to


def _backend_of(self: TensorBase) -> Any:
    """The backend as `Any`. Its methods may return numbers and sequences of another library's
    classes, and compiled code checks a method's declared result unless its object is `Any`."""
    return find_backend(self.device.type).backend


def strides(self: TensorBase) -> tuple[int, ...]:
    """Steps in elements from one index to the next, for each dimension."""
    if self._keyset & TRANSFORMS_BIT:
        return _strides_at_level(self)
    if self._keyset & FUNCTIONALIZE_BIT:
        return layout_of(self)[0]
    if self._view_info is not None and 0 in sizes_of(self):
        return _layout_of_nothing(self, self._view_info)[0]
    array: Any = self._backend_array
    if is_row_major_in_numpy(self):
        found = _steps_of(array_strides(array), self.dtype.itemsize)
        if found is not None:
            return found
    return whole_numbers(_backend_of(self).strides(array), array)


def _steps_of(steps: tuple[int, ...], itemsize: int) -> tuple[int, ...] | None:
    """A NumPy array's steps, in elements; None if one is 0, which is left to the backend."""
    found: list[int] = []
    for step in steps:
        if step == 0 or step % itemsize != 0:
            return None
        found.append(step // itemsize)
    return tuple(found)


def is_row_major_in_numpy(self: TensorBase) -> bool:
    """Whether the tensor's array is NumPy's and contiguous, its elements in row-major order.

    NumPy's `flags` has the same information, but is a new object each time.
    """
    array: Any = self._backend_array
    if type(array) is not np.ndarray or self._keyset & FUNCTIONALIZE_BIT:
        return False
    steps: tuple[int, ...] = array_strides(array)
    sizes = sizes_of(self)
    expected: int = self.dtype.itemsize
    for dim in range(len(sizes) - 1, -1, -1):
        size = sizes[dim]
        if size != 1:
            if steps[dim] != expected:
                return False
            expected *= size
    return True


def _layout_of_nothing(self: TensorBase, view: ViewInfo) -> tuple[tuple[int, ...], int]:
    """Strides and offset of a view without elements, which most libraries' arrays lack: the same
    operators on meta give them."""
    base = view.base
    array = MetaArray(sizes_of(base), base.dtype, strides(base), storage_offset(base))
    sizes = sizes_of(self)
    try:
        found = replay_on_meta(steps_up_to(view.last), array, base.dtype)
    except Exception:  # a package's view operator without a rule for meta
        return contiguous_strides(sizes), 0
    # A base that had another geometry when the view was made does not help.
    return (found.strides, found.offset) if found.shape == sizes else (contiguous_strides(sizes), 0)


def _strides_at_level(self: TensorBase) -> tuple[int, ...]:
    """The strides of the tensor that a level's tensor wraps, without the mapped dimension."""
    wrapped: Wrapped = self._backend_array
    steps = strides(wrapped.value)
    dim = wrapped.batch_dim
    return steps if dim < 0 else steps[:dim] + steps[dim + 1 :]


def storage_offset(self: TensorBase) -> int:
    """Where the first element is in the memory that views share, in elements."""
    if self._keyset & TRANSFORMS_BIT:
        wrapped: Wrapped = self._backend_array
        return storage_offset(wrapped.value)
    if self._keyset & FUNCTIONALIZE_BIT:
        return layout_of(self)[1]
    if self._view_info is not None and 0 in sizes_of(self):
        return _layout_of_nothing(self, self._view_info)[1]
    place = _backend_of(self).storage_offset(self._backend_array)
    return whole_numbers((place,), self._backend_array)[0]


def is_contiguous(self: TensorBase, memory_format: MemoryFormat = contiguous_format) -> bool:
    """Whether the elements are in memory without gaps, in row-major order or a format's order."""
    if memory_format.order:
        return has_format(sizes_of(self), strides(self), memory_format)
    if is_row_major_in_numpy(self) or (self._keyset & FUNCTIONALIZE_BIT and is_ordered(self)):
        return True
    sizes = sizes_of(self)
    return 0 in sizes or has_format(sizes, strides(self), memory_format)
