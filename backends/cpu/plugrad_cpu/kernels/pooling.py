"""Kernels of pooling: whole images are shifted and combined, one tap of the window at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad.plugins.windows import Windows, on_windows
from plugrad_cpu.kernels.adapters import wide_throughout
from plugrad_cpu.kernels.linalg import widen

Array = Any
Kernel = Callable[..., Any]


def max_pool2d(x: Array, windows: Windows) -> tuple[Any, Any]:
    """Maxima, and their positions in the images as row * width + column."""
    floating = x.dtype.kind == "f"
    least = -np.inf if floating else np.iinfo(x.dtype).min
    padded = windows.pad(np, x, least)
    shifts = windows.reads()
    best = padded[shifts[0]].copy()
    small = np.int8 if len(shifts) < 128 else np.int32
    taps = np.zeros(best.shape, small)
    if any(windows.padding):
        # Windows in which nothing exceeds the padding have their first element.
        taps[...] = windows.first_taps()
    # The first maximum is the last tap that exceeds all before it, so the largest such number.
    for number in range(1, len(shifts)):
        candidate = padded[shifts[number]]
        exceeds = np.greater(candidate, best).view(np.int8)
        np.maximum(taps, np.multiply(exceeds, number, dtype=small), out=taps)
        np.maximum(best, candidate, out=best)
    if floating and np.isnan(best).any():
        _point_at_nan(taps, padded, shifts)
    return best, _positions(taps, windows)


def _point_at_nan(taps: Array, padded: Array, shifts: list[tuple[Any, ...]]) -> None:
    """A window with nans yields its last one, as in PyTorch."""
    for number, shift in enumerate(shifts):
        taps[np.isnan(padded[shift])] = number


def _positions(taps: Array, windows: Windows) -> Array:
    width, spread = windows.sizes[1], windows.dilation
    offsets = np.array([i * spread[0] * width + j * spread[1] for i, j in windows.taps()])
    positions: Array = offsets.take(taps)
    positions += windows.starts(0)[:, None] * width + windows.starts(1)
    return positions


def max_pool2d_backward(
    grad: Array, shape: tuple[int, ...], indices: Array, windows: Windows
) -> Any:
    planes = math.prod(shape[:-2])
    area = shape[-2] * shape[-1]
    flat = indices.reshape(planes, math.prod(windows.out)) + np.arange(planes)[:, None] * area
    if windows.disjoint():
        result = np.zeros(planes * area, grad.dtype)
        result[flat.reshape(-1)] = grad.reshape(-1)
        return result.reshape(shape)
    total = np.bincount(flat.reshape(-1), widen(grad).reshape(-1), planes * area)
    return total.astype(grad.dtype).reshape(shape)


def avg_pool2d(
    x: Array, windows: Windows, count_include_pad: bool, divisor_override: int | None
) -> Any:
    """Sums of rows first, then of columns: height + width additions instead of height * width."""
    kernel, step = windows.kernel, windows.stride
    padded = windows.pad(np, x, 0)
    down, across = windows.extents()
    rows = padded[..., 0 : down : step[0], :].copy()
    for i in range(1, kernel[0]):
        rows += padded[..., i : i + down : step[0], :]
    total = rows[..., 0 : across : step[1]].copy()
    for j in range(1, kernel[1]):
        total += rows[..., j : j + across : step[1]]
    divisor = windows.divisor(count_include_pad, divisor_override)
    if x.dtype.kind in "iu":
        return np.trunc(total / divisor).astype(x.dtype)
    return np.divide(total, np.asarray(divisor, total.dtype), total)


def avg_pool2d_backward(
    grad: Array,
    shape: tuple[int, ...],
    windows: Windows,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    kernel, step, out = windows.kernel, windows.stride, windows.out
    divisor = windows.divisor(count_include_pad, divisor_override)
    share = grad / np.asarray(divisor, grad.dtype)
    down, across = windows.extents()
    rows, columns = windows.padded()
    wide = np.zeros((*shape[:-2], out[0], columns), grad.dtype)
    for j in range(kernel[1]):
        wide[..., j : j + across : step[1]] += share
    result = np.zeros((*shape[:-2], rows, columns), grad.dtype)
    for i in range(kernel[0]):
        result[..., i : i + down : step[0], :] += wide
    return np.ascontiguousarray(result[windows.interior()])


_ON_WINDOWS: Final[dict[str, Kernel]] = {
    "max_pool2d_with_indices": wide_throughout(max_pool2d),
    "max_pool2d_with_indices_backward": max_pool2d_backward,
    "avg_pool2d": wide_throughout(avg_pool2d),
    "avg_pool2d_backward": wide_throughout(avg_pool2d_backward),
}
KERNELS: Final[dict[str, Kernel]] = {
    name: on_windows(name, function) for name, function in _ON_WINDOWS.items()
}
