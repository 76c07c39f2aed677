"""`unfold` and `fold`: windows of images as columns, and columns summed into images."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from plugrad._generated.settings import Pooling
from plugrad.ops.composite.elementwise.precision import in_dtype_of, widened
from plugrad.ops.composite.layers.windows import fold_windows, open_windows
from plugrad.ops.composite.selection.positions import zero_like
from plugrad.ops.prepare import columns as prepare
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]


def im2col(self: Tensor, settings: Pooling) -> Tensor:
    windows = prepare.columns_windows(self, settings)
    leading = sizes_of(self)[: self.ndim - 2]
    rows = leading[-1] * math.prod(windows.kernel)
    opened = open_windows(self, windows, zero_like(self))
    return opened.reshape((*leading[:-1], rows, math.prod(windows.out)))


def col2im(self: Tensor, output_size: Ints, settings: Pooling) -> Tensor:
    windows = prepare.images_windows(self, output_size, settings)
    sizes = sizes_of(self)
    channels = sizes[-2] // math.prod(windows.kernel)
    taps = widened(self).reshape((*sizes[:-2], channels, *windows.kernel, *windows.out))
    return in_dtype_of(fold_windows(taps, windows), self)
