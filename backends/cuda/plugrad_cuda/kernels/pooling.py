"""Kernels of pooling: whole images are shifted and combined, one tap of the window at a time.

They serve dtypes for which there is no CUDA source.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from plugrad_cuda.kernels.family import INT64, Family, widen
from plugrad_cuda.kernels.namespace import Array, Kernel, Namespace
from plugrad_cuda.kernels.scattering import add_at

Pair = tuple[int, int]


def _better(xp: Any, best: Array, tap: Array, candidate: Array, number: int) -> tuple[Array, Array]:
    """The first maximum wins, but of nans the last one, as in PyTorch."""
    taken = (candidate > best) | (candidate != candidate)
    return xp.where(taken, candidate, best), xp.where(taken, number, tap)


class Pooling(Family):
    """Maxima and means of two-dimensional windows."""

    def __init__(self, ns: Namespace) -> None:
        super().__init__(ns)
        self.better = self.fused(_better)

    def kernels(self) -> dict[str, Kernel]:
        return {
            "max_pool2d_with_indices": self.max_pool2d,
            "max_pool2d_with_indices_backward": self.max_pool2d_backward,
            "avg_pool2d": self.avg_pool2d,
            "avg_pool2d_backward": self.avg_pool2d_backward,
        }

    def padded(
        self, x: Array, fill: Any, kernel: Pair, step: Pair, pad: Pair, spread: Pair, out: Pair
    ) -> Array:
        """The images with everything that windows reach."""
        height, width = x.shape[-2:]
        rows, columns = _reach(height, width, kernel, step, pad, spread, out)
        if rows == height and columns == width:
            return x
        padded = self.xp.full((*x.shape[:-2], rows, columns), fill, x.dtype)
        padded[..., pad[0] : pad[0] + height, pad[1] : pad[1] + width] = x
        return padded

    def max_pool2d(
        self, x: Array, kernel: Pair, step: Pair, pad: Pair, spread: Pair, out: Pair
    ) -> tuple[Any, Any]:
        """Maxima, and their positions in the images as row * width + column."""
        wide = widen(x)
        least = -np.inf if wide.dtype.kind == "f" else np.iinfo(wide.dtype).min
        padded = self.padded(wide, least, kernel, step, pad, spread, out)
        shifts = list(_shifts(kernel, step, spread, out))
        best = padded[shifts[0]]
        taps = self.xp.zeros(best.shape, INT64)
        for number in range(1, len(shifts)):
            best, taps = self.better(best, taps, padded[shifts[number]], number)
        positions = self.positions(taps, x.shape[-1], kernel, step, pad, spread, out)
        return best.astype(x.dtype), positions

    def positions(
        self, taps: Array, width: int, kernel: Pair, step: Pair, pad: Pair, spread: Pair, out: Pair
    ) -> Array:
        xp = self.xp
        rows, columns = taps // kernel[1], taps % kernel[1]
        top = (xp.arange(out[0]) * step[0] - pad[0])[:, None]
        left = xp.arange(out[1]) * step[1] - pad[1]
        return (rows * spread[0] + top) * width + columns * spread[1] + left

    def max_pool2d_backward(
        self,
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
        wide = widen(grad)
        flat = indices.reshape(planes, out[0] * out[1])
        flat = flat + self.xp.arange(planes)[:, None] * area
        result = self.xp.zeros(planes * area, wide.dtype)
        if all(step[i] >= (kernel[i] - 1) * spread[i] + 1 for i in range(2)):
            result[flat.reshape(-1)] = wide.reshape(-1)
        else:
            add_at(self.ns, result, (flat.reshape(-1),), wide.reshape(-1))
        return result.astype(grad.dtype, copy=False).reshape(shape)

    def divisor(
        self,
        shape: tuple[int, ...],
        kernel: Pair,
        step: Pair,
        pad: Pair,
        out: Pair,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Any:
        """What each window's sum is divided by: a number if it is the same for all."""
        if divisor_override is not None:
            return divisor_override
        rows = _counts(shape[-2], kernel[0], step[0], pad[0], out[0], count_include_pad)
        columns = _counts(shape[-1], kernel[1], step[1], pad[1], out[1], count_include_pad)
        if (rows == kernel[0]).all() and (columns == kernel[1]).all():
            return kernel[0] * kernel[1]
        return self.xp.asarray(rows)[:, None] * self.xp.asarray(columns)

    def avg_pool2d(
        self,
        x: Array,
        kernel: Pair,
        step: Pair,
        pad: Pair,
        spread: Pair,
        out: Pair,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Any:
        wide = widen(x)
        padded = self.padded(wide, 0, kernel, step, pad, (1, 1), out)
        total = self.xp.zeros((*x.shape[:-2], *out), wide.dtype)
        for shift in _shifts(kernel, step, (1, 1), out):
            total += padded[shift]
        divisor = self.divisor(x.shape, kernel, step, pad, out, count_include_pad, divisor_override)
        if x.dtype.kind in "iu":
            return self.xp.trunc(self.xp.true_divide(total, divisor)).astype(x.dtype)
        share = total / self.like(divisor, total)
        return share.astype(x.dtype, copy=False)

    def like(self, divisor: Any, values: Array) -> Any:
        return divisor.astype(values.dtype) if self.is_array(divisor) else divisor

    def avg_pool2d_backward(
        self,
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
        wide = widen(grad)
        divisor = self.divisor(shape, kernel, step, pad, out, count_include_pad, divisor_override)
        share = wide / self.like(divisor, wide)
        height, width = shape[-2:]
        rows, columns = _reach(height, width, kernel, step, pad, (1, 1), out)
        result = self.xp.zeros((*shape[:-2], rows, columns), wide.dtype)
        for shift in _shifts(kernel, step, (1, 1), out):
            result[shift] += share
        inside = result[..., pad[0] : pad[0] + height, pad[1] : pad[1] + width]
        return self.xp.ascontiguousarray(inside.astype(grad.dtype, copy=False))


def _reach(
    height: int, width: int, kernel: Pair, step: Pair, pad: Pair, spread: Pair, out: Pair
) -> Pair:
    """How far from the start of the padding the images and the windows reach."""
    rows, columns = (
        max((out[i] - 1) * step[i] + (kernel[i] - 1) * spread[i] + 1, pad[i] + size)
        for i, size in enumerate((height, width))
    )
    return rows, columns


def _shifts(kernel: Pair, step: Pair, spread: Pair, out: Pair) -> Iterator[tuple[Any, ...]]:
    """For each tap of the window the index of the elements it meets, row by row."""
    for i, j in itertools.product(range(kernel[0]), range(kernel[1])):
        top, left = i * spread[0], j * spread[1]
        yield (
            ...,
            slice(top, top + (out[0] - 1) * step[0] + 1, step[0]),
            slice(left, left + (out[1] - 1) * step[1] + 1, step[1]),
        )


def _counts(
    size: int, kernel: int, step: int, pad: int, out: int, count_include_pad: bool
) -> np.ndarray[Any, Any]:
    """How many elements each window averages, along one dimension."""
    start = np.arange(out) * step - pad
    end = np.minimum(start + kernel, size + pad)
    if count_include_pad:
        return end - start
    counts: np.ndarray[Any, Any] = np.minimum(end, size) - np.maximum(start, 0)
    return counts
