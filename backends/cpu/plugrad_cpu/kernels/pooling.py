"""Kernels of pooling: whole images are shifted and combined, one tap of the window at a time.

The same functions serve images and volumes: windows have their dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from plugrad.plugins.windows import Windows, on_windows
from plugrad_cpu.compiled import loops_for
from plugrad_cpu.kernels.linalg import widen
from plugrad_cpu.numerics.adapters import wide_throughout

Array = Any
Kernel = Callable[..., Any]


def max_pool(x: Array, windows: Windows) -> tuple[Any, Any]:
    """Maxima, and their positions as indices into the flattened image, signal or volume."""
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
    offsets: Array = np.zeros((), np.int64)
    for kernel, spread, size in zip(windows.kernel, windows.dilation, windows.sizes, strict=True):
        offsets = offsets[..., None] * size + np.arange(kernel) * spread
    positions: Array = offsets.reshape(-1).take(taps)
    positions += windows.corners()
    return positions


def max_pool1d(x: Array, kernel: int, stride: int, padding: int, dilation: int, count: int) -> Any:
    """The maxima of windows over the last dimension."""
    # NumPy is fast where windows are side by side.
    if stride > 1 and x.dtype.char in "fd":
        compiled = loops_for("pooling", x.size)
        if compiled:
            lines = np.ascontiguousarray(x).reshape(-1, x.shape[-1])
            made = np.empty((len(lines), count), x.dtype)
            compiled.maxima(lines, made, kernel, stride, padding, dilation)
            return made.reshape(*x.shape[:-1], count)
    one = ((stride,), (padding,), (dilation,), (count,))
    windows = Windows(x.shape[-1:], (kernel,), *one)
    padded = windows.pad(np, x, -np.inf)
    if stride <= 2 * kernel:
        best = _maxima_of_runs(padded, kernel, dilation)[windows.reads()[0]]
        return np.ascontiguousarray(best) if stride == 1 < kernel else best.copy()
    taps = [padded[read] for read in windows.reads()]
    best = taps[0].copy()
    for tap in taps[1:]:
        np.maximum(best, tap, out=best)
    return best


def _maxima_of_runs(x: Array, kernel: int, dilation: int) -> Array:
    """The maxima of windows at all places, from the maxima of two shorter windows, which may
    overlap."""
    width = 1
    while width < kernel:
        shift = min(width, kernel - width)
        x = np.maximum(x[..., : -shift * dilation], x[..., shift * dilation :])
        width += shift
    return x


def max_pool_backward(grad: Array, shape: tuple[int, ...], indices: Array, windows: Windows) -> Any:
    planes = math.prod(shape[: len(shape) - len(windows.sizes)])
    area = math.prod(windows.sizes)
    flat = indices.reshape(planes, math.prod(windows.out)) + np.arange(planes)[:, None] * area
    if windows.disjoint():
        result = np.zeros(planes * area, grad.dtype)
        result[flat.reshape(-1)] = grad.reshape(-1)
        return result.reshape(shape)
    total = np.bincount(flat.reshape(-1), widen(grad).reshape(-1), planes * area)
    return total.astype(grad.dtype).reshape(shape)


def avg_pool(x: Array, windows: Windows, count_include_pad: bool, divisor: int | None) -> Any:
    """Sums along one dimension, then the next: height + width additions for height * width."""
    total = windows.pad(np, x, 0)
    for axis, kernel in enumerate(windows.kernel):
        reads = _along(windows, axis)
        part = total[reads[0]].copy()
        for tap in range(1, kernel):
            part += total[reads[tap]]
        total = part
    found = windows.divisor(count_include_pad, divisor)
    if x.dtype.kind in "iu":
        return np.trunc(total / found).astype(x.dtype)
    return np.divide(total, np.asarray(found, total.dtype), total)


def _along(windows: Windows, axis: int) -> list[tuple[Any, ...]]:
    """For each tap along a dimension the index of what it reads in the padded array; taps of
    average pooling are side by side."""
    extent, step = windows.extents()[axis], windows.stride[axis]
    behind = (slice(None),) * (len(windows.sizes) - axis - 1)
    return [(..., slice(tap, tap + extent, step), *behind) for tap in range(windows.kernel[axis])]


def avg_pool_backward(
    grad: Array,
    shape: tuple[int, ...],
    windows: Windows,
    count_include_pad: bool,
    divisor: int | None,
) -> Any:
    found = windows.divisor(count_include_pad, divisor)
    share = grad / np.asarray(found, grad.dtype)
    padded = windows.padded()
    spatial = len(padded)
    for axis in reversed(range(spatial)):
        made = shape[: len(shape) - spatial] + windows.out[:axis] + padded[axis:]
        wide = np.zeros(made, grad.dtype)
        for read in _along(windows, axis):
            wide[read] += share
        share = wide
    return np.ascontiguousarray(share[windows.interior()])


def im2col(x: Array, windows: Windows) -> Any:
    """Windows as columns, (..., C, H, W) to (..., C * taps, windows)."""
    padded = windows.pad(np, x, 0)
    taps = np.empty((*x.shape[:-2], len(windows.taps()), *windows.out), x.dtype)
    for number, read in enumerate(windows.reads()):
        taps[..., number, :, :] = padded[read]
    rows = x.shape[-3] * len(windows.taps())
    return taps.reshape(*x.shape[:-3], rows, math.prod(windows.out))


def col2im(columns: Array, windows: Windows) -> Any:
    """Columns summed at the positions of their windows."""
    leading = columns.shape[:-2]
    count = len(windows.taps())
    taps = columns.reshape(*leading, columns.shape[-2] // count, count, *windows.out)
    padded = np.zeros((*taps.shape[: len(leading) + 1], *windows.padded()), columns.dtype)
    for number, read in enumerate(windows.reads()):
        padded[read] += taps[..., number, :, :]
    return np.ascontiguousarray(padded[windows.interior()])


_ON_WINDOWS: Final[dict[str, Kernel]] = {
    "max_pool2d_with_indices": wide_throughout(max_pool),
    "max_pool2d_with_indices_backward": max_pool_backward,
    "max_pool3d_with_indices": wide_throughout(max_pool),
    "max_pool3d_with_indices_backward": max_pool_backward,
    "avg_pool2d": wide_throughout(avg_pool),
    "avg_pool2d_backward": wide_throughout(avg_pool_backward),
    "avg_pool3d": wide_throughout(avg_pool),
    "avg_pool3d_backward": wide_throughout(avg_pool_backward),
    "im2col": im2col,
    "col2im": wide_throughout(col2im),
}
KERNELS: Final[dict[str, Kernel]] = {
    "_max_pool1d": max_pool1d,
    **{name: on_windows(name, function) for name, function in _ON_WINDOWS.items()},
}
