"""Kernels of pooling: whole images are shifted and combined, one tap of the window at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from plugrad_cpu.kernels.floating_errors import quiet
from plugrad_cpu.kernels.linalg import is_narrow, widen

Array = Any
Kernel = Callable[..., Any]
Pair = tuple[int, int]


def _extent(out: int, kernel: int, step: int, spread: int) -> int:
    """How far from the start of the padding the windows reach."""
    return (out - 1) * step + (kernel - 1) * spread + 1


def _padded(
    x: Array, fill: Any, kernel: Pair, step: Pair, pad: Pair, spread: Pair, out: Pair
) -> Array:
    """The images with everything that windows reach; the images themselves if that is nothing."""
    height, width = x.shape[-2:]
    rows = max(_extent(out[0], kernel[0], step[0], spread[0]), pad[0] + height)
    columns = max(_extent(out[1], kernel[1], step[1], spread[1]), pad[1] + width)
    if rows == height and columns == width:
        return x
    padded = np.full((*x.shape[:-2], rows, columns), fill, x.dtype)
    padded[..., pad[0] : pad[0] + height, pad[1] : pad[1] + width] = x
    return padded


def _shifts(kernel: Pair, step: Pair, spread: Pair, out: Pair) -> Iterator[tuple[Any, ...]]:
    """For each tap of the window the index of the elements it meets, row by row."""
    for i, j in itertools.product(range(kernel[0]), range(kernel[1])):
        top = i * spread[0]
        left = j * spread[1]
        yield (
            ...,
            slice(top, top + (out[0] - 1) * step[0] + 1, step[0]),
            slice(left, left + (out[1] - 1) * step[1] + 1, step[1]),
        )


def max_pool2d(
    x: Array, kernel: Pair, step: Pair, pad: Pair, spread: Pair, out: Pair
) -> tuple[Any, Any]:
    """Maxima, and their positions in the images as row * width + column."""
    if is_narrow(x):
        best, positions = max_pool2d(widen(x), kernel, step, pad, spread, out)
        return best.astype(x.dtype), positions
    floating = x.dtype.kind == "f"
    least = -np.inf if floating else np.iinfo(x.dtype).min
    padded = _padded(x, least, kernel, step, pad, spread, out)
    shifts = list(_shifts(kernel, step, spread, out))
    best = padded[shifts[0]].copy()
    small = np.int8 if len(shifts) < 128 else np.int32
    taps = np.zeros(best.shape, small)
    # The first maximum is the last tap that exceeds all before it, so the largest such number.
    for number in range(1, len(shifts)):
        candidate = padded[shifts[number]]
        exceeds = np.greater(candidate, best).view(np.int8)
        np.maximum(taps, np.multiply(exceeds, number, dtype=small), out=taps)
        np.maximum(best, candidate, out=best)
    if floating and np.isnan(best).any():
        _point_at_nan(taps, padded, shifts)
    return best, _positions(taps, x.shape[-1], kernel, step, pad, spread, out)


def _point_at_nan(taps: Array, padded: Array, shifts: list[tuple[Any, ...]]) -> None:
    """A window with nans yields its last one, as in PyTorch."""
    for number, shift in enumerate(shifts):
        taps[np.isnan(padded[shift])] = number


def _positions(
    taps: Array, width: int, kernel: Pair, step: Pair, pad: Pair, spread: Pair, out: Pair
) -> Array:
    rows = np.arange(kernel[0]) * (spread[0] * width)
    offsets = (rows[:, None] + np.arange(kernel[1]) * spread[1]).reshape(-1)
    top = (np.arange(out[0]) * step[0] - pad[0])[:, None] * width
    positions: Array = offsets.take(taps)
    positions += top + (np.arange(out[1]) * step[1] - pad[1])
    return positions


def max_pool2d_backward(
    grad: Array,
    shape: tuple[int, ...],
    indices: Array,
    kernel: Pair,
    step: Pair,
    pad: Pair,
    spread: Pair,
    out: Pair,
) -> Any:
    planes = math.prod(shape[:-2])
    area = shape[-2] * shape[-1]
    flat = indices.reshape(planes, out[0] * out[1]) + np.arange(planes)[:, None] * area
    disjoint = all(step[i] >= (kernel[i] - 1) * spread[i] + 1 for i in range(2))
    if disjoint:
        result = np.zeros(planes * area, grad.dtype)
        result[flat.reshape(-1)] = grad.reshape(-1)
        return result.reshape(shape)
    total = np.bincount(flat.reshape(-1), widen(grad).reshape(-1), planes * area)
    return total.astype(grad.dtype).reshape(shape)


def _counts(
    size: int, kernel: int, step: int, pad: int, out: int, count_include_pad: bool
) -> Array:
    """How many elements each window averages, along one dimension."""
    start = np.arange(out) * step - pad
    end = np.minimum(start + kernel, size + pad)
    if count_include_pad:
        return end - start
    return np.minimum(end, size) - np.maximum(start, 0)


def _divisor(
    shape: tuple[int, ...],
    kernel: Pair,
    step: Pair,
    pad: Pair,
    out: Pair,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """What each window's sum is divided by: one number if it is the same for all."""
    if divisor_override is not None:
        return divisor_override
    rows = _counts(shape[-2], kernel[0], step[0], pad[0], out[0], count_include_pad)
    columns = _counts(shape[-1], kernel[1], step[1], pad[1], out[1], count_include_pad)
    if (rows == kernel[0]).all() and (columns == kernel[1]).all():
        return kernel[0] * kernel[1]
    return rows[:, None] * columns


def avg_pool2d(
    x: Array,
    kernel: Pair,
    step: Pair,
    pad: Pair,
    spread: Pair,
    out: Pair,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """Sums of rows first, then of columns: height + width additions instead of height * width."""
    if is_narrow(x):
        return avg_pool2d(
            widen(x), kernel, step, pad, spread, out, count_include_pad, divisor_override
        ).astype(x.dtype)
    padded = _padded(x, 0, kernel, step, pad, spread, out)
    down = (out[0] - 1) * step[0] + 1
    across = (out[1] - 1) * step[1] + 1
    rows = padded[..., 0 : down : step[0], :].copy()
    for i in range(1, kernel[0]):
        rows += padded[..., i : i + down : step[0], :]
    total = rows[..., 0 : across : step[1]].copy()
    for j in range(1, kernel[1]):
        total += rows[..., j : j + across : step[1]]
    divisor = _divisor(x.shape, kernel, step, pad, out, count_include_pad, divisor_override)
    if x.dtype.kind in "iu":
        return np.trunc(total / divisor).astype(x.dtype)
    return np.divide(total, np.asarray(divisor, total.dtype), total)


def avg_pool2d_backward(
    grad: Array,
    shape: tuple[int, ...],
    kernel: Pair,
    step: Pair,
    pad: Pair,
    spread: Pair,
    out: Pair,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    if is_narrow(grad):
        return avg_pool2d_backward(
            widen(grad), shape, kernel, step, pad, spread, out, count_include_pad, divisor_override
        ).astype(grad.dtype)
    divisor = _divisor(shape, kernel, step, pad, out, count_include_pad, divisor_override)
    share = grad / np.asarray(divisor, grad.dtype)
    height, width = shape[-2:]
    down = (out[0] - 1) * step[0] + 1
    across = (out[1] - 1) * step[1] + 1
    columns = max(across + kernel[1] - 1, pad[1] + width)
    rows = max(down + kernel[0] - 1, pad[0] + height)
    wide = np.zeros((*shape[:-2], out[0], columns), grad.dtype)
    for j in range(kernel[1]):
        wide[..., j : j + across : step[1]] += share
    result = np.zeros((*shape[:-2], rows, columns), grad.dtype)
    for i in range(kernel[0]):
        result[..., i : i + down : step[0], :] += wide
    return np.ascontiguousarray(result[..., pad[0] : pad[0] + height, pad[1] : pad[1] + width])


KERNELS: Final[dict[str, Kernel]] = {
    "max_pool2d_with_indices": quiet(max_pool2d),
    "max_pool2d_with_indices_backward": quiet(max_pool2d_backward),
    "avg_pool2d": quiet(avg_pool2d),
    "avg_pool2d_backward": quiet(avg_pool2d_backward),
}
