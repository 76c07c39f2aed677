"""Computes with strides: which elements of a memory an array of some sizes and strides has.

Sizes, strides and offsets are ints, and count elements. Functions that make arrays take the array
library as `xp`: a namespace with the names of the array API standard. Backends import these
functions from `plugrad.plugins.strides`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

Sizes = tuple[int, ...]


def contiguous_strides(sizes: Sequence[int]) -> Sizes:
    """The strides of an array in row-major order.

    >>> from plugrad.plugins.strides import contiguous_strides
    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1] * len(sizes)
    for dim in range(len(sizes) - 2, -1, -1):
        strides[dim] = strides[dim + 1] * max(sizes[dim + 1], 1)
    return tuple(strides)


def reach(size: Sizes, stride: Sizes, offset: int) -> int:
    """How many elements of a memory, from its first one on, there must be: none for an empty array.

    Strides are not negative.

    >>> from plugrad.plugins.strides import reach
    >>> reach((2, 3), (3, 1), 0)
    6
    """
    if 0 in size:
        return 0
    last = offset
    for length, step in zip(size, stride, strict=True):
        last += (length - 1) * step
    return last + 1


def check_reach(size: Sizes, stride: Sizes, offset: int, itemsize: int, nbytes: int) -> None:
    """RuntimeError if elements of `itemsize` bytes would be outside a memory of `nbytes`.

    >>> from plugrad.plugins.strides import check_reach
    >>> check_reach((2, 3), (3, 1), 0, 4, 24)
    """
    needed = reach(size, stride, offset) * itemsize
    if needed > nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, "
            f"and itemsize {itemsize} requiring a storage size of {needed} are out of bounds for "
            f"storage of size {nbytes}"
        )


def may_overlap(size: Sizes, stride: Sizes) -> bool:
    """Whether elements of a tensor may share memory; False if they do not.

    >>> from plugrad.plugins.strides import may_overlap
    >>> may_overlap((2, 3), (3, 1)), may_overlap((2, 3), (1, 1)), may_overlap((2, 3), (0, 1))
    (False, True, True)
    """
    if 0 in size:
        return False
    covered = 0
    for step, length in sorted(zip(stride, size, strict=True)):
        if length > 1:
            if step <= covered:
                return True
            covered += step * (length - 1)
    return False


def viewed_strides(sizes: Sizes, strides: Sizes, target: Sizes) -> Sizes | None:
    """Strides that show the same elements in another shape; None if there are none.

    There is an element, and there are as many of them in both shapes.

    >>> from plugrad.plugins.strides import viewed_strides
    >>> viewed_strides((2, 3, 4), (12, 1, 3), (2, 12)), viewed_strides((2, 3), (3, 1), (3, 2))
    (None, (2, 1))
    """
    blocks = _blocks(sizes, strides)
    found: list[int] = []
    count, step = blocks.pop(0) if blocks else (1, 1)
    covered = 1
    for length in reversed(target):
        if length == 1:
            found.append(step * covered)
            continue
        while covered == count and blocks:
            count, step = blocks.pop(0)
            covered = 1
        if count % (covered * length) != 0:
            return None
        found.append(step * covered)
        covered *= length
    return tuple(reversed(found))


def _blocks(sizes: Sizes, strides: Sizes) -> list[tuple[int, int]]:
    """Runs of dimensions that are contiguous in memory, from the last: elements and step."""
    blocks: list[tuple[int, int]] = []
    for length, stride in reversed(list(zip(sizes, strides, strict=True))):
        if length == 1:
            continue
        if blocks and stride == blocks[-1][0] * blocks[-1][1]:
            blocks[-1] = (blocks[-1][0] * length, blocks[-1][1])
        else:
            blocks.append((length, stride))
    return blocks


def diagonal_run(rows: int, columns: int, offset: int) -> tuple[int, int, int]:
    """The first row, the first column and the number of elements of a matrix' diagonal."""
    row, column = max(-offset, 0), max(offset, 0)
    return row, column, max(min(rows - row, columns - column), 0)


def diagonal_sizes(sizes: Sizes, offset: int, dim1: int, dim2: int) -> Sizes:
    """The sizes of `diag_embed`: the last dimension becomes a diagonal of two of the result's."""
    length = sizes[-1] + abs(offset)
    found = list(sizes[:-1])
    for place in sorted((dim1, dim2)):
        found.insert(place, length)
    return tuple(found)


def strided_positions(xp: Any, size: Sizes, stride: Sizes, offset: Any) -> Any:
    """Where in a flat memory each element is, as int64 of shape `size`.

    Args:
        offset: an int, or a 0-dim array if it is not known yet.

    >>> import numpy as np
    >>> from plugrad.plugins.strides import strided_positions
    >>> strided_positions(np, (2, 3), (1, 2), 4)
    array([[4, 6, 8],
           [5, 7, 9]])
    """
    found = xp.full(size, offset, dtype=xp.int64)
    for dim, (length, step) in enumerate(zip(size, stride, strict=True)):
        along = xp.arange(length, dtype=xp.int64) * step
        found += along.reshape((length,) + (1,) * (len(size) - dim - 1))
    return found


def summed_positions(
    xp: Any,
    size: Sizes,
    stride: Sizes,
    storage_offset: int,
    output_size: Sizes,
    output_stride: Sizes,
    output_offset: int,
) -> tuple[Any, Any, int]:
    """What `_strided_sum` adds up where; takes the arguments of that operator behind its array.

    Returns:
        The positions at which the array's elements are added to a memory of zeros, those from
        which the result is read, and how many elements that memory has: at least one.
    """
    added = strided_positions(xp, size, stride, storage_offset)
    read = strided_positions(xp, output_size, output_stride, output_offset)
    count = reach(size, stride, storage_offset)
    return added, read, max(count, reach(output_size, output_stride, output_offset), 1)


def copy_order(array: Any) -> Literal["C", "K"]:
    """The layout, in NumPy's terms, of a copy that keeps the strides of dense arrays.

    Where elements overlap PyTorch lays out afresh. The array has NumPy's `flags` and `strides`.
    """
    if array.flags.c_contiguous:
        return "C"
    for size, stride in zip(array.shape, array.strides, strict=True):
        if stride == 0 and size > 1:
            return "C"
    return "K"
