"""Pooling of signals, as pooling of images that are one pixel high."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad._generated.settings import Pooling
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dispatch.keys import FORWARD_AD_BIT
from plugrad.dispatch.local_state import current_state
from plugrad.dtype import FLOATING
from plugrad.ops.prepare.pooling import check_ranks
from plugrad.ops.windows import window_count
from plugrad.tensor.base import needs_grad, sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]

# Taps of a window that are compared one after the other.
_FEW: Final = 16


def avg_pool1d(self: Tensor, settings: Pooling) -> Tensor:
    check_ranks("avg_pool1d", self)
    how = settings.copy()
    how.kernel_size = (1, *_of_one("kernel_size", settings.kernel_size))
    if settings.stride:
        how.stride = (1, *_of_one("stride", settings.stride))
    how.padding = (0, *_of_one("padding", settings.padding))
    return C.call_avg_pool2d_with(self.unsqueeze(-2), how).squeeze(-2)


def _of_one(name: str, given: Ints) -> Ints:
    if len(given) != 1:
        raise RuntimeError(
            f"avg_pool1d() argument '{name}' should contain one int (got {len(given)})"
        )
    return given


def max_pool1d(self: Tensor, settings: Pooling) -> Tensor:
    shape = sizes_of(self)
    if not 2 <= len(shape) <= 3 or 0 in shape[len(shape) - 2 :]:
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for "
            f"input, but got:{list(shape)}"
        )
    if self.dtype.category != FLOATING:
        raise not_implemented("max_pool1d_impl", self.dtype)
    how = _of_images(self, settings)
    if how.kernel_size[1] <= _FEW and self.device.type == "cpu" and not _is_watched(self):
        size = sizes_of(self)[self.ndim - 1]
        one = (how.kernel_size[1], how.stride[1], how.padding[1], how.dilation[1])
        return C.call__max_pool1d(self, *one, window_count(size, *one, how.ceil_mode))
    return C.call_max_pool2d_with_indices_with(self.unsqueeze(-2), how)[0].squeeze(-2)


def _is_watched(self: Tensor) -> bool:
    """Whether positions may be needed later: for a derivative, or within a transform."""
    state = current_state()
    return (
        (state.grad_enabled and needs_grad(self))
        or self._keyset & FORWARD_AD_BIT != 0
        or state.level is not None
        or state.trace is not None
    )


def max_pool1d_by_taps(
    self: Tensor, kernel: int, step: int, pad: int, spread: int, count: int
) -> Tensor:
    """The maxima without their positions: of one tap of all windows after the other."""
    size = sizes_of(self)[self.ndim - 1]
    extent = (count - 1) * step + 1
    behind = extent + (kernel - 1) * spread - pad - size
    parts: list[Any] = [self]
    if pad > 0:
        parts.insert(0, _border(self, pad))
    if behind > 0:
        parts.append(_border(self, behind))
    padded: Any = self if len(parts) == 1 else F.cat(parts, -1)
    found: Any = None
    for tap in range(kernel):
        first = tap * spread
        part = F.slice(padded, -1, first, first + extent, step)
        found = part if found is None else F.maximum(found, part)
    return found.clone() if kernel == 1 else found


def _border(self: Tensor, count: int) -> Tensor:
    shape = (*sizes_of(self)[: self.ndim - 1], count)
    return F.full(shape, -math.inf, dtype=self.dtype, device=self.device)


def max_pool1d_with_indices(self: Tensor, settings: Pooling) -> tuple[Tensor, Tensor]:
    how = _of_images(self, settings)
    found, indices = C.call_max_pool2d_with_indices_with(self.unsqueeze(-2), how)
    return found.squeeze(-2), indices.squeeze(-2)


def _of_images(self: Tensor, settings: Pooling) -> Pooling:
    """The windows over images that are one pixel high; RuntimeError if they do not fit."""
    check_ranks("max_pool1d", self)
    kernel = _single("kernel_size", "an int, list of ints or tuple of ints", settings.kernel_size)
    step = kernel
    if settings.stride:
        step = _single("stride", "None, an int, list of ints, or tuple of ints", settings.stride)
    pad = _single("padding", "an int, list of ints, or tuple of ints", settings.padding)
    spread = _single("dilation", "an int, list of ints, or tuple of ints", settings.dilation)
    for name, value in (("kernel_size", kernel), ("stride", step), ("dilation", spread)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {value}")
    if pad < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {pad}")
    if 2 * pad > kernel:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={pad} "
            f"and kernel_size={kernel}"
        )
    size = sizes_of(self)[self.ndim - 1]
    count = window_count(size, kernel, step, pad, spread, settings.ceil_mode)
    if count < 1:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {count}")
    how = settings.copy()
    how.kernel_size, how.stride = (1, kernel), (1, step)
    how.padding, how.dilation = (0, pad), (1, spread)
    return how


def _single(name: str, form: str, given: Ints) -> int:
    if len(given) != 1:
        raise RuntimeError(
            f"max_pool1d() {name} must be {form} of size 1 but got size {len(given)}"
        )
    return given[0]
