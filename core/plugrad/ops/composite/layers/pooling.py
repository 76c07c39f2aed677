"""Pooling as the greatest or the mean of what windows read."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad._generated.settings import Pooling
from plugrad.dtype import FLOATING, iinfo, int64
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.ops.composite.layers.windows import fold_windows, open_windows
from plugrad.ops.composite.selection.positions import index_tensor, zero_like
from plugrad.ops.prepare import pooling as prepare
from plugrad.ops.windows import Windows
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.interop.arrays import from_host

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def _positions(windows: Windows) -> Any:
    """Where in an image, row by row, each tap of each window reads, (taps, rows, columns)."""
    rows, columns = windows.places(0), windows.places(1)
    found = rows[:, None, :, None] * windows.sizes[1] + columns[None, :, None, :]
    return found.reshape((-1, *windows.out))


def max_pool2d_with_indices(self: Tensor, settings: Pooling) -> tuple[Tensor, Tensor]:
    prepare.max_pool2d_with_indices(self, settings)
    windows = prepare.pooling_windows("max_pool2d", self, settings)
    count = windows.kernel[0] * windows.kernel[1]
    floating = self.dtype.category >= FLOATING
    least: Any = -math.inf if floating else iinfo(self.dtype).min
    fill = F.full((), least, dtype=self.dtype, device=self.device)
    opened = open_windows(self, windows, fill)
    taps = opened.reshape((*sizes_of(self)[:-2], count, *windows.out))
    dim = self.ndim - 2
    best = taps.amax(dim=(dim,), keepdim=True)
    places = index_tensor(_positions(windows), self)
    # Counted down, the first of equal taps is the greatest; windows with nan point at the last one.
    numbers = np.arange(count, 0, -1).reshape((count, 1, 1))
    nothing = F.zeros((), dtype=int64, device=self.device)
    first = count - F.where(taps == best, index_tensor(numbers, self), nothing).amax(dim=(dim,))
    if any(windows.padding):
        # Padding is never chosen, even if nothing exceeds it.
        first = F.maximum(first, index_tensor(windows.first_taps(), self))
    if floating:
        upward = index_tensor(np.arange(1, count + 1).reshape((count, 1, 1)), self)
        last = F.where(taps != taps, upward, nothing).amax(dim=(dim,))
        first = F.where(last > 0, last - 1, first)
    chosen = first.unsqueeze(dim) == index_tensor(np.arange(count).reshape((count, 1, 1)), self)
    indices = F.where(chosen, places, nothing).sum(dim=(dim,), dtype=int64)
    return best.squeeze(dim), indices


def max_pool2d_with_indices_backward(
    grad_output: Tensor, self: Tensor, settings: Pooling, indices: Tensor
) -> Tensor:
    windows = prepare.pooling_windows("max_pool2d", self, settings)
    grad = widened(grad_output)
    dim = self.ndim - 2
    chosen = indices.unsqueeze(dim) == index_tensor(_positions(windows), self)
    taps = F.where(chosen, grad.unsqueeze(dim), zero_like(grad))
    taps = taps.reshape((*sizes_of(self)[:-2], *windows.kernel, *windows.out))
    return in_dtype_of(fold_windows(taps, windows), grad_output)


def _divisor(windows: Windows, like: TensorBase, settings: Pooling) -> Any:
    """What each window's sum is divided by."""
    counts = windows.divisor(settings.count_include_pad, settings.divisor_override)
    if isinstance(counts, int):
        return counts
    return from_host(counts.astype(like.dtype.numpy), like.dtype, like.device)


def avg_pool2d(self: Tensor, settings: Pooling) -> Tensor:
    prepare.avg_pool2d(self, settings)
    windows = prepare.pooling_windows("avg_pool2d", self, settings)
    x = widened(self)
    first = self.ndim - 2
    total = open_windows(x, windows, zero_like(x)).sum(dim=(first, first + 1), dtype=x.dtype)
    divisor = _divisor(windows, x, settings)
    rounding = None if self.dtype.category >= FLOATING else "trunc"
    return in_dtype_of(F.div(total, divisor, rounding_mode=rounding), self)


def avg_pool2d_backward(grad_output: Tensor, self: Tensor, settings: Pooling) -> Tensor:
    windows = prepare.pooling_windows("avg_pool2d", self, settings)
    grad = widened(grad_output)
    share = grad / _divisor(windows, grad, settings)
    first = self.ndim - 2
    taps = share.unsqueeze(first).unsqueeze(first)
    spread_out = taps.expand((*sizes_of(self)[:-2], *windows.kernel, *windows.out))
    return in_dtype_of(fold_windows(spread_out, windows), grad_output)
