"""Memory layouts: the order of the dimensions of strided tensors in memory.

An order names the dimensions, outermost first. Sizes and strides count elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from plugrad.memory_format import (
    MemoryFormat,
    channels_last,
    channels_last_3d,
    contiguous_format,
)
from plugrad.tensor.aliasing.strides import contiguous_strides

Sizes = tuple[int, ...]


def is_dense(sizes: Sizes, strides: Sizes) -> bool:
    """Whether the strides reach every element of a memory without gaps, and each only once."""
    if 0 in sizes:
        return True
    expected = 1
    for step, size in sorted(zip(strides, sizes, strict=True)):
        if size != 1:
            if step != expected:
                return False
            expected *= size
    return True


def memory_order(sizes: Sizes, strides: Sizes) -> Sizes:
    """The order of dimensions in memory of a copy with its source's layout."""
    return common_order(sizes, [strides])


def common_order(sizes: Sizes, operands: Sequence[Sizes]) -> Sizes:
    """The order of a result's dimensions in memory, from its operands' strides.

    For two dimensions, the first operand that does not repeat its elements along one of them
    decides. If there is none, the two dimensions keep their order.
    """
    order = list(range(len(sizes) - 1, -1, -1))
    for start in range(1, len(order)):
        moving = start
        for place in range(start - 1, -1, -1):
            difference = _compare(sizes, operands, order[place], order[moving])
            if difference > 0:
                order[place], order[moving] = order[moving], order[place]
                moving = place
            elif difference < 0:
                break
    order.reverse()
    return tuple(order)


def _compare(sizes: Sizes, operands: Sequence[Sizes], inner: int, outer: int) -> int:
    """Positive if the dimension that should be the inner one has the longer stride."""
    for strides in operands:
        if strides[inner] == 0 or strides[outer] == 0:
            continue
        difference = strides[inner] - strides[outer]
        if difference != 0:
            return difference
        if sizes[inner] > sizes[outer]:
            return 1
    return 0


def strides_in_order(sizes: Sizes, order: Sizes) -> Sizes:
    """The strides of a tensor with a given order of dimensions, without gaps."""
    strides = [0] * len(sizes)
    steps = contiguous_strides([sizes[dim] for dim in order])
    for dim, step in zip(order, steps, strict=True):
        strides[dim] = step
    return tuple(strides)


def broadcast_strides(sizes: Sizes, strides: Sizes, target: Sizes) -> Sizes:
    """The strides of a tensor that is expanded to other sizes."""
    added = len(target) - len(sizes)
    kept = [0 if size == 1 else step for size, step in zip(sizes, strides, strict=True)]
    return (0,) * added + tuple(kept)


def inverse(order: Sizes) -> Sizes:
    """The permutation that undoes another one."""
    found = [0] * len(order)
    for place, dim in enumerate(order):
        found[dim] = place
    return tuple(found)


def has_format(sizes: Sizes, strides: Sizes, memory_format: MemoryFormat) -> bool:
    """Whether elements are in a memory format without gaps."""
    order = memory_format.order
    if not order:
        if 0 in sizes:
            return True
        order = tuple(range(len(sizes)))
    if len(order) != len(sizes):
        return False
    expected = 1
    for dim in reversed(order):
        # The step along a dimension of size 1 is never taken.
        if sizes[dim] != 1:
            if strides[dim] != expected:
                return False
            expected *= sizes[dim]
    return True


def suggested_format(sizes: Sizes, strides: Sizes) -> MemoryFormat:
    """The format that strides look like, gaps or not; in doubt it is the contiguous one."""
    for memory_format in (channels_last, channels_last_3d):
        if len(memory_format.order) == len(sizes) and _looks_like(
            sizes, strides, memory_format.order
        ):
            return memory_format
    return contiguous_format


def _looks_like(sizes: Sizes, strides: Sizes, order: Sizes) -> bool:
    """Whether the steps grow along an order, from the channels on, to the batch at its end."""
    if strides[1] == 0:
        return False
    least = 0
    for dim in reversed(order):
        if sizes[dim] == 0 or strides[dim] < least:
            return False
        if dim == 0 and least == strides[1]:
            # All but the batch have size 1, so that a contiguous tensor has the same strides.
            return False
        least = strides[dim] * max(sizes[dim], 1)
    return True
