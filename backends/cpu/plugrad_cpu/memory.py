"""Arrays as PyTorch sees them: strides and offset in elements of the memory that views share."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def element_strides(array: Array) -> tuple[int, ...]:
    """Strides in elements; those of an empty array are what a contiguous one would have."""
    itemsize = array.itemsize
    if array.size == 0:
        strides: list[int] = []
        step = 1
        for size in reversed(array.shape):
            strides.append(step)
            step *= max(size, 1)
        return tuple(reversed(strides))
    return tuple([stride // itemsize for stride in array.strides])


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
    return flat if flat.dtype == array.dtype else flat.view(array.dtype)


def strided(flat: Array, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Array:
    """A writable view of one-dimensional memory; strides and offset in elements.

    Raises RuntimeError if it would reach outside the memory.
    """
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    itemsize = flat.itemsize
    if 0 in size:
        return np.empty(size, flat.dtype)
    if last >= flat.size:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, "
            f"and itemsize {itemsize} requiring a storage size of {(last + 1) * itemsize} are out "
            f"of bounds for storage of size {flat.size * itemsize}"
        )
    strides = tuple([step * itemsize for step in stride])
    return np.lib.stride_tricks.as_strided(flat[offset:], size, strides)
