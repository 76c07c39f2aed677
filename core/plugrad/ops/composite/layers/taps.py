"""Which elements of a line make up each element of a resampled line, and with what weights.

A line of a new length is a weighted sum of elements of the old one: result i reads the elements
`indices[:, i]` and multiplies them by `weights[:, i]`. The weights depend on the lengths only, so
they are computed on the host, in the precision in which PyTorch computes them.
"""

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

Array = Any


@dataclass(frozen=True)
class Taps:
    """What each element of the result reads, (taps, length).

    Attributes:
        weights: None if each element is read once and unchanged.
        valid: None if every tap counts; the others read element 0, which must not matter, whatever
            it is.
    """

    indices: Array
    weights: Array | None = None
    valid: Array | None = None


@dataclass(frozen=True)
class Resampling:
    """How lines are resampled.

    Attributes:
        mode: "nearest", "nearest-exact", "linear", "cubic", "area", or "linear-aa", "cubic-aa" and
            "lanczos-aa", which average over what one element of the result covers.
        align_corners: whether the first and the last elements keep their places.
        scale: how much longer the result is, if that is not the ratio of the lengths; 0.0 if it is.
        single: whether positions and weights are computed in float32.
    """

    mode: str
    align_corners: bool
    scale: float
    single: bool

    @property
    def dtype(self) -> Any:
        """NumPy's dtype of positions and weights."""
        return np.float32 if self.single else np.float64

    def step(self, length: int, count: int) -> Any:
        """The distance between neighbours in the result, counted in elements of the input."""
        number = self.dtype
        if self.align_corners:
            return number(length - 1) / number(count - 1) if count > 1 else number(0)
        if self.scale > 0.0:
            return number(1.0 / self.scale)
        return number(length) / number(count)


@lru_cache(maxsize=128)
def taps(how: Resampling, length: int, count: int) -> Taps:
    """What a line of `count` elements reads of one of `length`."""
    if how.mode == "area":
        return _bands(how, length, count)
    if how.mode.endswith("-aa"):
        return _averages(how, length, count)
    step = how.step(length, count)
    places = np.arange(count).astype(how.dtype)
    if how.mode == "nearest":
        return Taps(_held(np.floor(step * places), length)[None])
    if how.mode == "nearest-exact":
        return Taps(_held(np.floor(step * (places + how.dtype(0.5))), length)[None])
    half = how.dtype(0.5)
    at = step * places if how.align_corners else step * (places + half) - half
    if how.mode == "linear":
        at = np.maximum(at, how.dtype(0))
        first = _held(at, length)
        part = np.clip(at - first.astype(how.dtype), 0, 1)
        indices = np.stack([first, np.minimum(first + 1, length - 1)])
        return Taps(indices, np.stack([1 - part, part]))
    first = np.minimum(np.floor(at).astype(np.int64), length - 1)
    part = np.clip(at - first.astype(how.dtype), 0, 1)
    offsets = np.arange(-1, 3)[:, None]
    indices = np.clip(first + offsets, 0, length - 1)
    return Taps(indices, _cubic(np.abs(offsets - part), -0.75).astype(how.dtype))


def _held(places: Array, length: int) -> Array:
    return np.minimum(places.astype(np.int64), length - 1)


def _cubic(x: Array, a: float) -> Array:
    """The convolution kernel of Keys, "Cubic convolution interpolation for digital image
    processing", 1981, at distances x >= 0."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _lanczos(x: Array) -> Array:
    return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0)


# The kernel of each mode and how far it reaches.
_FILTERS: Final[dict[str, tuple[Callable[[Array], Array], int]]] = {
    "linear-aa": (lambda x: np.maximum(1 - x, 0), 1),
    "cubic-aa": (lambda x: _cubic(x, -0.5), 2),
    "lanczos-aa": (_lanczos, 3),
}


def _averages(how: Resampling, length: int, count: int) -> Taps:
    """The kernel is stretched, where the result is shorter than the input."""
    function, reach = _FILTERS[how.mode]
    number = how.dtype
    step = how.step(length, count)
    stretch = max(step, number(1))
    support = number(reach) * stretch
    center = step * (np.arange(count).astype(number) + number(0.5))
    first = np.maximum((center - support + number(0.5)).astype(np.int64), 0)
    behind = np.minimum((center + support + number(0.5)).astype(np.int64), length)
    return _ranges(
        first,
        np.minimum(behind - first, math.ceil(support) * 2 + 1),
        lambda places: function(np.abs((places - center + number(0.5)) / stretch)),
        number,
    )


def _bands(how: Resampling, length: int, count: int) -> Taps:
    places = np.arange(count)
    first = places * length // count
    behind = -(-(places + 1) * length // count)
    return _ranges(first, behind - first, lambda places: np.ones(places.shape), how.dtype)


def _ranges(first: Array, sizes: Array, weigh: Callable[[Array], Array], number: Any) -> Taps:
    """Consecutive taps from `first` with weights that sum to 1."""
    most = max(int(sizes.max(initial=0)), 1)
    steps = np.arange(most)[:, None]
    valid = steps < sizes
    places = first + steps
    weights = np.where(valid, weigh(places), 0).astype(number)
    total = weights.sum(0)
    weights = weights / np.where(total == 0, 1, total)
    indices = np.where(valid, places, 0)
    return Taps(indices, weights.astype(number), None if valid.all() else valid)


# Weights of bytes are integers below this one.
_LIMIT: Final = 1 << 15
_FINEST: Final = 22


@lru_cache(maxsize=128)
def byte_taps(how: Resampling, length: int, count: int) -> tuple[Taps, int]:
    """What a line of `count` bytes reads of one of `length`, and the bits after the point.

    The weights are integers: the weights of `taps`, in float64, times 2 to the power of the bits.
    As many bits are kept as leave the largest weight below 2**15. A result is the sum of weights
    times bytes, divided by that power and rounded half up; PyTorch computes bytes so.
    """
    found = taps(Resampling(how.mode, how.align_corners, how.scale, False), length, count)
    if found.weights is None:
        raise ValueError(f"byte_taps: elements are moved, not weighed, in the mode {how.mode!r}")
    weights = found.weights.copy()
    largest = float(weights[0].max(initial=0))
    for tap in range(1, len(weights)):
        if found.valid is None:
            # At a border several taps read one element, and its weight is rounded once.
            again = found.indices[tap] == found.indices[tap - 1]
            weights[tap] += np.where(again, weights[tap - 1], 0)
            weights[tap - 1] *= ~again
        largest = max(largest, float(weights[tap].max(initial=0)))
    bits = 0
    while bits < _FINEST and int(0.5 + largest * (1 << (bits + 1))) < _LIMIT:
        bits += 1
    whole = np.trunc(weights * (1 << bits) + np.copysign(0.5, weights)).astype(np.int32)
    return Taps(found.indices, whole, found.valid), bits


@lru_cache(maxsize=128)
def transposed_taps(how: Resampling, length: int, count: int) -> Taps:
    """The taps by which the gradient of `length` elements reads the gradient of `count`
    elements."""
    forward = taps(how, length, count)
    read = forward.indices.reshape(-1)
    by = np.tile(np.arange(count), forward.indices.shape[0])
    weights = np.ones(read.shape) if forward.weights is None else forward.weights.reshape(-1)
    counts = weights != 0
    if forward.valid is not None:
        counts &= forward.valid.reshape(-1)
    read, by, weights = read[counts], by[counts], weights[counts]
    # Where both ends of a tap meet at a border, one element is read more than once.
    pairs, inverse = np.unique(read * max(count, 1) + by, return_inverse=True)
    weights = np.bincount(inverse, weights, pairs.size)
    read, by = pairs // max(count, 1), pairs % max(count, 1)
    sizes = np.bincount(read, minlength=length)
    rank = np.arange(read.size) - (np.cumsum(sizes) - sizes)[read]
    shape = (max(int(sizes.max(initial=0)), 1), length)
    indices, valid = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
    spread = np.zeros(shape, how.dtype)
    indices[rank, read], valid[rank, read], spread[rank, read] = by, True, weights
    every = bool(valid.all())
    plain = forward.weights is None
    return Taps(indices, None if plain else spread, None if every else valid)
