"""The order of elements: a radix sort, which needs no comparisons.

NumPy sorts integers of 16 bits by their digits and all others by comparisons, which takes several
times longer. Here the elements become unsigned integers in the same order, which are sorted 16 bits
at a time, the lowest first: each pass is stable, so it keeps the order of earlier passes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

# Shorter lines are sorted by comparisons: counting digits would take longer.
_LONG: Final = 256
_LONG_WIDE: Final = 4096
_DIGIT: Final = 16
# For the first of a line, one of so many elements is in the sample.
_STEP: Final = 32


def _unsigned(size: int) -> np.dtype[Any]:
    return np.dtype(f"u{size}")


def is_floating(a: Array) -> bool:
    """Whether an array's dtype is one of NumPy's floating point dtypes, or bfloat16."""
    return a.dtype.kind in "fV"


def _float_keys(a: Array, descending: bool) -> tuple[Array, int]:
    """The bits of floats as unsigned integers: turned is the sign, and all of what is negative."""
    size = a.dtype.itemsize
    kind = _unsigned(size)
    bits = np.array(a, order="C").view(kind)
    sign = kind.type(1 << (8 * size - 1))
    bits[bits == sign] = 0  # -0.0 equals 0.0
    flips = (bits.view(f"i{size}") >> (8 * size - 1)).view(kind)
    flips |= sign
    bits ^= flips
    nan = np.isnan(a)
    if nan.any():
        bits[nan] = kind.type((1 << 8 * size) - 1)
    if descending:
        np.invert(bits, out=bits)
    return bits, 8 * size


def _integer_keys(a: Array, descending: bool) -> tuple[Array, int]:
    """How far integers are from their least, or from their greatest."""
    size = a.dtype.itemsize
    kind = _unsigned(size)
    low, high = a.min(), a.max()
    plain = np.ascontiguousarray(a).view(kind)
    keys = high.view(kind) - plain if descending else plain - low.view(kind)
    bits = (int(high) - int(low)).bit_length()
    return (keys.astype(np.uint32) if size > 4 and bits <= 32 else keys), bits


def ordered_keys(a: Array, descending: bool) -> tuple[Array, int]:
    """Unsigned integers, contiguous, in the order of the elements, and how many bits they have.

    nan is the greatest, as in PyTorch.
    """
    if a.dtype == np.bool_:
        a = a.view(np.uint8)
    return (_float_keys if is_floating(a) else _integer_keys)(a, descending)


def _digit(keys: Array, shift: int) -> Array:
    """16 bits of each key."""
    if keys.dtype.itemsize <= 2:
        return keys
    digit: Array = np.right_shift(keys, keys.dtype.type(shift)).astype(np.uint16)
    return digit


def _by_digits(keys: Array, bits: int) -> Array:
    order = np.argsort(_digit(keys, 0), -1, kind="stable")
    for shift in range(_DIGIT, bits, _DIGIT):
        digit = _digit(keys, shift)
        if keys.ndim == 1:
            order = order.take(digit.take(order).argsort(kind="stable"))
        else:
            following = np.take_along_axis(digit, order, -1).argsort(-1, kind="stable")
            order = np.take_along_axis(order, following, -1)
    return order


def stable_order(a: Array, dim: int = -1, descending: bool = False) -> Array:
    """The indices that sort along a dimension; equal elements keep their order."""
    if a.shape[dim] >= (_LONG_WIDE if a.dtype == np.float64 else _LONG):
        keys, bits = ordered_keys(np.moveaxis(a, dim, -1), descending)
        return np.moveaxis(_by_digits(keys, bits), -1, dim)
    if a.dtype.kind == "V":  # NumPy does not sort bfloat16
        a = a.astype(np.float32)
    if not descending:
        return np.argsort(a, dim, kind="stable")
    # The reversed array is sorted, and reversed again.
    reverse = np.argsort(np.flip(a, dim), dim, kind="stable")
    # A copy: strides of a single element would stay negative otherwise.
    places: Array = np.flip(a.shape[dim] - 1 - reverse, dim)
    return places.copy()


def _bounds(line: Array, count: int, descending: bool) -> Array:
    """Indices of elements that include the first ones in the order, and few others.

    A sample estimates the bound. If it is misleading, there are too few or many.
    """
    sample = line[::_STEP]
    share = count / _STEP
    rank = min(int(share + 4 * share**0.5) + 4, sample.size - 1)
    if descending:
        rank = sample.size - 1 - rank
    bound = np.partition(sample, rank)[rank]
    # nan is greater than any bound.
    return np.flatnonzero(~(line < bound) if descending else line <= bound)


def _first(line: Array, count: int, descending: bool) -> Array:
    """The first indices of the order of one line."""
    found = _bounds(line, count, descending)
    if found.size < count:
        return stable_order(line, -1, descending)[:count]
    return found.take(stable_order(line.take(found), -1, descending)[:count])


def first_in_order(a: Array, count: int, dim: int, descending: bool) -> Array:
    """The first `count` along a dimension of what `stable_order` gives."""
    length = a.shape[dim]
    if length < _LONG_WIDE or not 0 < count <= length // _STEP:
        order = stable_order(a, dim, descending)
        return order[(*(slice(None),) * (dim % a.ndim), slice(count))].copy()
    if a.dtype.kind == "V":  # NumPy does not sort bfloat16
        a = a.astype(np.float32)
    lines = np.moveaxis(a, dim, -1)
    found = np.empty((*lines.shape[:-1], count), np.int64)
    for place in np.ndindex(lines.shape[:-1]):
        found[place] = _first(lines[place], count, descending)
    return np.moveaxis(found, -1, dim)
