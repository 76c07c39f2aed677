"""Kernels of pooling: whole images are shifted and combined, one tap of the window at a time.

They serve dtypes for which there is no CUDA source.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plugrad.plugins.windows import Windows, on_windows
from plugrad_cuda.kernels.family import INT64, Family, widen
from plugrad_cuda.kernels.namespace import Array, Kernel, Namespace
from plugrad_cuda.kernels.scattering import add_at


def _better(xp: Any, best: Array, tap: Array, candidate: Array, number: int) -> tuple[Array, Array]:
    """The first maximum wins, but of nans the last one, as in PyTorch."""
    taken = (candidate > best) | (candidate != candidate)
    return xp.where(taken, candidate, best), xp.where(taken, number, tap)


class Pooling(Family):
    """Maxima and means of windows in two or three dimensions, and windows as columns."""

    def __init__(self, ns: Namespace) -> None:
        super().__init__(ns)
        self.better = self.fused(_better)

    def kernels(self) -> dict[str, Kernel]:
        functions: dict[str, Kernel] = {
            "max_pool2d_with_indices": self.max_pool,
            "max_pool2d_with_indices_backward": self.max_pool_backward,
            "max_pool3d_with_indices": self.max_pool,
            "max_pool3d_with_indices_backward": self.max_pool_backward,
            "avg_pool2d": self.avg_pool,
            "avg_pool2d_backward": self.avg_pool_backward,
            "avg_pool3d": self.avg_pool,
            "avg_pool3d_backward": self.avg_pool_backward,
            "im2col": self.im2col,
            "col2im": self.col2im,
        }
        return {name: on_windows(name, function) for name, function in functions.items()}

    def max_pool(self, x: Array, windows: Windows) -> tuple[Any, Any]:
        """Maxima, and their positions as indices into the flattened image."""
        wide = widen(x)
        least = -np.inf if wide.dtype.kind == "f" else np.iinfo(wide.dtype).min
        padded = windows.pad(self.xp, wide, least)
        shifts = windows.reads()
        best = padded[shifts[0]]
        taps = self.xp.zeros(best.shape, INT64)
        for number in range(1, len(shifts)):
            best, taps = self.better(best, taps, padded[shifts[number]], number)
        return best.astype(x.dtype), self.positions(taps, windows)

    def positions(self, taps: Array, windows: Windows) -> Array:
        """As indices into the flattened image, what the windows read with the taps of these
        numbers."""
        xp = self.xp
        found: Any = 0
        rest = math.prod(windows.kernel)
        for axis, kernel in enumerate(windows.kernel):
            rest //= kernel
            behind = (1,) * (len(windows.out) - axis - 1)
            starts = xp.arange(windows.out[axis]) * windows.stride[axis] - windows.padding[axis]
            place = taps // rest % kernel * windows.dilation[axis] + starts.reshape(-1, *behind)
            found = found * windows.sizes[axis] + place
        return found

    def max_pool_backward(
        self, grad: Array, shape: tuple[int, ...], indices: Array, windows: Windows
    ) -> Any:
        planes = math.prod(shape[: len(shape) - len(windows.sizes)])
        area = math.prod(windows.sizes)
        wide = widen(grad)
        flat = indices.reshape(planes, math.prod(windows.out))
        flat = flat + self.xp.arange(planes)[:, None] * area
        result = self.xp.zeros(planes * area, wide.dtype)
        if windows.disjoint():
            result[flat.reshape(-1)] = wide.reshape(-1)
        else:
            add_at(self.ns, result, (flat.reshape(-1),), wide.reshape(-1))
        return result.astype(grad.dtype, copy=False).reshape(shape)

    def leading(self, shape: tuple[int, ...], windows: Windows) -> tuple[int, ...]:
        return shape[: len(shape) - len(windows.sizes)]

    def on_device(self, divisor: Any, dtype: Any) -> Any:
        """What windows' sums are divided by, one number or one for each."""
        return divisor if isinstance(divisor, int) else self.xp.asarray(divisor, dtype)

    def avg_pool(
        self, x: Array, windows: Windows, count_include_pad: bool, divisor_override: int | None
    ) -> Any:
        wide = widen(x)
        padded = windows.pad(self.xp, wide, 0)
        total = self.xp.zeros((*self.leading(x.shape, windows), *windows.out), wide.dtype)
        for shift in windows.reads():
            total += padded[shift]
        divisor = windows.divisor(count_include_pad, divisor_override)
        if x.dtype.kind in "iu":
            means = self.xp.true_divide(total, self.on_device(divisor, INT64))
            return self.xp.trunc(means).astype(x.dtype)
        share = total / self.on_device(divisor, total.dtype)
        return share.astype(x.dtype, copy=False)

    def avg_pool_backward(
        self,
        grad: Array,
        shape: tuple[int, ...],
        windows: Windows,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Any:
        wide = widen(grad)
        divisor = windows.divisor(count_include_pad, divisor_override)
        share = wide / self.on_device(divisor, wide.dtype)
        result = self.xp.zeros((*self.leading(shape, windows), *windows.padded()), wide.dtype)
        for shift in windows.reads():
            result[shift] += share
        inside = result[windows.interior()]
        return self.xp.ascontiguousarray(inside.astype(grad.dtype, copy=False))

    def im2col(self, x: Array, windows: Windows) -> Any:
        """Windows as columns, (..., C, H, W) to (..., C * taps, windows)."""
        padded = windows.pad(self.xp, x, 0)
        taps = self.xp.empty((*x.shape[:-2], len(windows.taps()), *windows.out), x.dtype)
        for number, read in enumerate(windows.reads()):
            taps[..., number, :, :] = padded[read]
        rows = x.shape[-3] * len(windows.taps())
        return taps.reshape(*x.shape[:-3], rows, math.prod(windows.out))

    def col2im(self, columns: Array, windows: Windows) -> Any:
        """Columns summed at the positions of their windows."""
        wide = widen(columns)
        count = len(windows.taps())
        channels = columns.shape[-2] // count
        taps = wide.reshape(*columns.shape[:-2], channels, count, *windows.out)
        shape = (*columns.shape[:-2], channels, *windows.padded())
        padded = self.xp.zeros(shape, wide.dtype)
        for number, read in enumerate(windows.reads()):
            padded[read] += taps[..., number, :, :]
        inside = padded[windows.interior()].astype(columns.dtype, copy=False)
        return self.xp.ascontiguousarray(inside)
