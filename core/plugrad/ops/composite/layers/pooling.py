"""Pooling as the maximum or the mean of each window, over any number of dimensions."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad._generated.settings import Pooling
from plugrad.dtype import FLOATING, iinfo
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.ops.composite.layers.maxima import chosen_places, greatest_taps
from plugrad.ops.composite.layers.windows import fold_windows, open_windows
from plugrad.ops.composite.selection.positions import index_tensor, zero_like
from plugrad.ops.prepare import pooling as prepare
from plugrad.ops.windows import Windows
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.interop.arrays import from_host

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def _max_pool(self: Tensor, windows: Windows) -> tuple[Tensor, Tensor]:
    floating = self.dtype.category >= FLOATING
    lowest: Any = -math.inf if floating else iinfo(self.dtype).min
    fill = F.full((), lowest, dtype=self.dtype, device=self.device)
    opened = open_windows(self, windows, fill)
    dim = self.ndim - len(windows.sizes)
    taps = opened.reshape((*sizes_of(self)[:dim], math.prod(windows.kernel), *windows.out))
    # Padding is never chosen, even if nothing exceeds it.
    least = windows.first_taps() if any(windows.padding) else None
    best, chosen = greatest_taps(taps, dim, least)
    places: Any = index_tensor(windows.tap_places(), self)
    return best, chosen_places(chosen, places, dim)


def _max_pool_backward(grad_output: Tensor, self: Tensor, indices: Tensor, w: Windows) -> Tensor:
    grad = widened(grad_output)
    dim = self.ndim - len(w.sizes)
    chosen = indices.unsqueeze(dim) == index_tensor(w.tap_places(), self)
    taps = F.where(chosen, grad.unsqueeze(dim), zero_like(grad))
    taps = taps.reshape((*sizes_of(self)[:dim], *w.kernel, *w.out))
    return in_dtype_of(fold_windows(taps, w), grad_output)


def _divisor(windows: Windows, like: TensorBase, settings: Pooling) -> Any:
    """What each window's sum is divided by."""
    counts = windows.divisor(settings.count_include_pad, settings.divisor_override)
    if isinstance(counts, int):
        return counts
    return from_host(counts.astype(like.dtype.numpy), like.dtype, like.device)


def _avg_pool(self: Tensor, settings: Pooling, windows: Windows) -> Tensor:
    x = widened(self)
    spatial = len(windows.sizes)
    first = self.ndim - spatial
    taps = tuple(range(first, first + spatial))
    total = open_windows(x, windows, zero_like(x)).sum(dim=taps, dtype=x.dtype)
    divisor = _divisor(windows, x, settings)
    rounding = None if self.dtype.category >= FLOATING else "trunc"
    return in_dtype_of(F.div(total, divisor, rounding_mode=rounding), self)


def _avg_pool_backward(
    grad_output: Tensor, self: Tensor, settings: Pooling, windows: Windows
) -> Tensor:
    grad = widened(grad_output)
    share = grad / _divisor(windows, grad, settings)
    leading = sizes_of(self)[: self.ndim - len(windows.sizes)]
    ones = (1,) * len(windows.sizes)
    taps = share.reshape((*leading, *ones, *windows.out))
    spread_out = taps.expand((*leading, *windows.kernel, *windows.out))
    return in_dtype_of(fold_windows(spread_out, windows), grad_output)


def max_pool2d_with_indices(self: Tensor, settings: Pooling) -> tuple[Tensor, Tensor]:
    prepare.max_pool2d_with_indices(self, settings)
    return _max_pool(self, prepare.pooling_windows("max_pool2d", self, settings, 2))


def max_pool3d_with_indices(self: Tensor, settings: Pooling) -> tuple[Tensor, Tensor]:
    prepare.max_pool3d_with_indices(self, settings)
    return _max_pool(self, prepare.pooling_windows("max_pool3d", self, settings, 3))


def max_pool2d_with_indices_backward(
    grad_output: Tensor, self: Tensor, settings: Pooling, indices: Tensor
) -> Tensor:
    windows = prepare.pooling_windows("max_pool2d", self, settings, 2)
    return _max_pool_backward(grad_output, self, indices, windows)


def max_pool3d_with_indices_backward(
    grad_output: Tensor, self: Tensor, settings: Pooling, indices: Tensor
) -> Tensor:
    windows = prepare.pooling_windows("max_pool3d", self, settings, 3)
    return _max_pool_backward(grad_output, self, indices, windows)


def avg_pool2d(self: Tensor, settings: Pooling) -> Tensor:
    prepare.avg_pool2d(self, settings)
    return _avg_pool(self, settings, prepare.pooling_windows("avg_pool2d", self, settings, 2))


def avg_pool3d(self: Tensor, settings: Pooling) -> Tensor:
    prepare.avg_pool3d(self, settings)
    return _avg_pool(self, settings, prepare.pooling_windows("avg_pool3d", self, settings, 3))


def avg_pool2d_backward(grad_output: Tensor, self: Tensor, settings: Pooling) -> Tensor:
    windows = prepare.pooling_windows("avg_pool2d", self, settings, 2)
    return _avg_pool_backward(grad_output, self, settings, windows)


def avg_pool3d_backward(grad_output: Tensor, self: Tensor, settings: Pooling) -> Tensor:
    windows = prepare.pooling_windows("avg_pool3d", self, settings, 3)
    return _avg_pool_backward(grad_output, self, settings, windows)
