"""Pooling of signals: that of images which are one pixel high."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING

from plugrad._generated import calls as C
from plugrad._generated.settings import Pooling
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import FLOATING
from plugrad.ops.prepare.pooling import check_ranks
from plugrad.ops.windows import window_count
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]


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
    return max_pool1d_with_indices(self, settings)[0]


def max_pool1d_with_indices(self: Tensor, settings: Pooling) -> tuple[Tensor, Tensor]:
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
    found, indices = C.call_max_pool2d_with_indices_with(self.unsqueeze(-2), how)
    return found.squeeze(-2), indices.squeeze(-2)


def _single(name: str, form: str, given: Ints) -> int:
    if len(given) != 1:
        raise RuntimeError(
            f"max_pool1d() {name} must be {form} of size 1 but got size {len(given)}"
        )
    return given[0]
