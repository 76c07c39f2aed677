"""Strides and offsets of arrays as in PyTorch, in elements of the memory that views share."""

from __future__ import annotations

from typing import Any

import numpy as np

from plugrad.plugins.strides import check_reach, contiguous_strides

Array = np.ndarray[Any, Any]


def element_strides(array: Array) -> tuple[int, ...]:
    """Strides in elements; an empty array has a contiguous array's strides.

    So has a new dimension of size 1, for which NumPy has 0.
    """
    sizes = array.shape
    if array.size == 0:
        return contiguous_strides(sizes)
    itemsize = array.itemsize
    strides = [stride // itemsize for stride in array.strides]
    following = 1
    for dim in range(len(sizes) - 1, -1, -1):
        if sizes[dim] == 1 and strides[dim] == 0:
            strides[dim] = following
        following = sizes[dim] * strides[dim]
    return tuple(strides)


def owner(array: Array) -> Array:
    """The array that a view was first taken of: the one that holds the memory."""
    found = array
    while True:
        base = found.base
        if not isinstance(base, np.ndarray):
            # What NumPy's as_strided returns keeps an object that keeps the array.
            base = getattr(base, "base", None)
            if not isinstance(base, np.ndarray):
                return found
        found = base


def element_offset(array: Array) -> int:
    """Elements between the start of the memory and the array's first element."""
    holder = owner(array)
    if holder is array or array.size == 0:
        return 0
    start: int = array.__array_interface__["data"][0]
    base: int = holder.__array_interface__["data"][0]
    return (start - base) // array.itemsize


def flat_memory(array: Array) -> Array:
    """All elements of the memory behind an array, in one dimension and of the array's dtype."""
    holder = owner(array)
    flat = holder.ravel(order="K")
    if flat.size and not np.may_share_memory(flat, holder):
        raise RuntimeError(
            "as_strided(): the memory behind this tensor has gaps, which NumPy cannot address"
        )
    if flat.dtype == array.dtype:
        return flat
    # What is left at the end is not an element of that dtype.
    whole = flat.nbytes - flat.nbytes % array.itemsize
    return flat.view(np.uint8)[:whole].view(array.dtype)


def strided(flat: Array, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Array:
    """A writable view of one-dimensional memory; strides and offset in elements.

    Raises RuntimeError if it would reach outside the memory.
    """
    if 0 in size:
        return np.empty(size, flat.dtype)
    itemsize = flat.itemsize
    check_reach(size, stride, offset, itemsize, flat.nbytes)
    strides = tuple([step * itemsize for step in stride])
    return np.lib.stride_tricks.as_strided(flat[offset:], size, strides)
