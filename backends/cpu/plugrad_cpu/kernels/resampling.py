"""Kernels of resampling, one dimension at a time: copy elements, or multiply them by matrices of
weights.

Neighbours of the result depend on neighbouring elements, so the matrix of weights is cut into
blocks with few zero columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np

from plugrad_cpu.kernels.linalg import is_narrow, widen

Array = Any
Ints = tuple[int, ...]
Floats = tuple[float, ...]
# Elements of the result, the elements that they read, and the weights of these.
Block = tuple[slice, slice, Array]

# How many elements of the result a block has.
_BLOCK: Final = 16
# Longer lines would have too many blocks, or too large ones: the decomposition reads tap by tap.
_LONGEST: Final = 4096
# Copies of an element that are written one after the other.
_FEW: Final = 8


@lru_cache(maxsize=64)
def _blocks(how: Any, length: int, count: int, back: bool) -> list[Block] | None:
    """The matrix (count, length) in blocks; None if elements are moved, but not weighed."""
    # Loaded on demand, as the operators of resampling are.
    from plugrad.plugins.resampling import taps, transposed_taps

    found = transposed_taps(how, count, length) if back else taps(how, length, count)
    return None if found.weights is None else _cut(found)


@lru_cache(maxsize=64)
def _byte_blocks(how: Any, length: int, count: int) -> tuple[list[Block], int]:
    """The matrix (count, length) of whole numbers in blocks, and their bits after the point."""
    from plugrad.plugins.resampling import byte_taps

    found, bits = byte_taps(how, length, count)
    return _cut(found, np.float64), bits


def _cut(found: Any, dtype: Any = None) -> list[Block]:
    count = found.indices.shape[1]
    weights = found.weights if found.valid is None else np.where(found.valid, found.weights, 0)
    blocks: list[Block] = []
    for start in range(0, count, _BLOCK):
        made = slice(start, min(start + _BLOCK, count))
        part = weights[:, made]
        read = found.indices[:, made]
        used = read[part != 0]
        first, behind = (used.min(), used.max() + 1) if used.size else (0, 1)
        matrix = np.zeros((part.shape[1], behind - first), dtype or weights.dtype)
        rows = np.broadcast_to(np.arange(part.shape[1]), part.shape)
        np.add.at(matrix, (rows[part != 0], used - first), part[part != 0])
        blocks.append((made, slice(int(first), int(behind)), matrix))
    return blocks


def _along(x: Array, axis: int, count: int, blocks: list[Block]) -> Array:
    before, behind = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    if behind == 1:
        lines, made = x.reshape(before, -1), np.empty((before, count), x.dtype)
        for to, of, matrix in blocks:
            np.matmul(lines[:, of], matrix.T, made[:, to])
    else:
        lines, made = x.reshape(before, -1, behind), np.empty((before, count, behind), x.dtype)
        for to, of, matrix in blocks:
            np.matmul(matrix, lines[:, of], made[:, to])
    return made.reshape(shape)


def _repeated(x: Array, factor: int) -> Array:
    """Each element of the last dimension, repeated `factor` times."""
    made = np.empty((*x.shape, factor), x.dtype)
    for place in range(factor):
        made[..., place] = x
    return made.reshape(*x.shape[:-1], x.shape[-1] * factor)


def _moved(x: Array, sizes: Ints, mode: str, scales: Floats) -> Array:
    """Elements moved but not weighed, along one dimension after the other."""
    from plugrad.plugins.resampling import Resampling, taps

    single = x.dtype != np.float64
    growth = {axis: sizes[axis] / x.shape[axis] for axis in range(-len(sizes), 0)}
    # Those first that make the array smaller. Then the last one, as whole rows are moved faster
    # than their elements.
    for axis in sorted(growth, key=lambda axis: (min(growth[axis], 1), -axis)):
        length, size, scale = x.shape[axis], sizes[axis], scales[axis]
        if length == size and scale in (0.0, 1.0):
            continue
        places = taps(Resampling(mode, False, scale, single), length, size).indices[0]
        factor = size // length
        if axis == -1 and 2 <= factor <= _FEW and np.array_equal(places, np.arange(size) // factor):
            x = _repeated(x, factor)
        else:
            x = x.take(places, axis)
    return x


def _resampled(
    x: Array, sizes: Ints, mode: str, align_corners: bool, scales: Floats, back: bool
) -> Any:
    from plugrad.plugins.resampling import Resampling

    if x.size == 0 or mode.startswith("nearest") or not (x.dtype.kind == "f" or is_narrow(x)):
        return NotImplemented
    leading = x.ndim - len(sizes)
    if max(*sizes, *x.shape[leading:]) > _LONGEST:
        return NotImplemented
    wide = np.ascontiguousarray(widen(x))
    # Times 0, what is not finite would reach elements that do not read it.
    if not np.isfinite(wide).all():
        return NotImplemented
    single = wide.dtype == np.float32
    steps: list[tuple[float, int, list[Block]]] = []
    for place, (size, scale) in enumerate(zip(sizes, scales, strict=True)):
        length = x.shape[leading + place]
        if length == size and (mode.startswith("area") or scale in (0.0, 1.0)):
            continue
        blocks = _blocks(Resampling(mode, align_corners, scale, single), length, size, back)
        if blocks is None:
            return NotImplemented
        steps.append((size / max(length, 1), -place, blocks))
    # First the dimensions that make the array smaller; then the last one, which has the longest
    # lines.
    for _, place, blocks in sorted(steps, key=lambda step: step[:2]):
        wide = _along(wide, leading - place, sizes[-place], blocks)
    return np.array(wide, x.dtype, copy=None if steps else True)


def _bytes_resampled(x: Array, sizes: Ints, mode: str, align_corners: bool, scales: Floats) -> Any:
    """Bytes, rounded after each dimension, the last one first; float64 holds the sums exactly."""
    from plugrad.plugins.resampling import Resampling

    if mode == "area" or max(*sizes, *x.shape[x.ndim - len(sizes) :]) > _LONGEST:
        return NotImplemented
    found = x
    for axis in range(-1, -len(sizes) - 1, -1):
        length, count = x.shape[axis], sizes[axis]
        if length == count:
            continue
        blocks, bits = _byte_blocks(
            Resampling(mode, align_corners, scales[axis], False), length, count
        )
        wide = np.ascontiguousarray(found, np.float64)
        total = _along(wide, found.ndim + axis, count, blocks)
        total *= 2.0**-bits
        total += 0.5
        np.floor(total, total)
        found = np.clip(total, 0, 255, out=total).astype(np.uint8)
    return found if found is not x else x.copy()


def resample(x: Array, sizes: Ints, mode: str, align_corners: bool, scales: Floats) -> Any:
    if mode.startswith("nearest") and x.size:
        moved = _moved(x, sizes, mode, scales)
        return moved if moved is not x else x.copy()
    if x.dtype == np.uint8 and x.size:
        return _bytes_resampled(x, sizes, mode, align_corners, scales)
    return _resampled(x, sizes, mode, align_corners, scales, False)


def resample_backward(
    grad: Array, sizes: Ints, mode: str, align_corners: bool, scales: Floats
) -> Any:
    return _resampled(grad, sizes, mode, align_corners, scales, True)


KERNELS: Final[dict[str, Callable[..., Any]]] = {
    "_resample": resample,
    "_resample_backward": resample_backward,
}
