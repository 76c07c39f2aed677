"""Reads a tensor's windows, and the transpose of that, one dimension at a time: each takes elements
along the dimension by an index and fills the positions outside by a mask.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.dtype import bool_
from plugrad.ops.composite.selection.positions import index_tensor, mask_tensor, zero_like
from plugrad.ops.windows import Windows
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]


def open_windows(x: Tensor, windows: Windows, fill: Tensor) -> Tensor:
    """What each tap of each window reads, (..., *sizes) to (..., *kernel, *out); `fill` is what
    the padding consists of."""
    count = len(windows.sizes)
    leading = x.ndim - count
    apart: list[int] = []
    for axis in range(count):
        places = windows.places(axis).reshape(-1)
        x = _take(x, leading + axis, places, windows.sizes[axis], fill)
        apart += [windows.kernel[axis], windows.out[axis]]
    spread = x.reshape((*sizes_of(x)[:leading], *apart))
    return spread.permute(_order(leading, count, True)).contiguous()


def fold_windows(taps: Tensor, windows: Windows) -> Tensor:
    """The transpose: what taps read is added up where it was read, (..., *kernel, *out) to
    (..., *sizes)."""
    count = len(windows.sizes)
    leading = taps.ndim - 2 * count
    x = taps.permute(_order(leading, count, False)).contiguous()
    nothing = zero_like(x)
    for axis in range(count):
        kernel, out, size = windows.kernel[axis], windows.out[axis], windows.sizes[axis]
        dim = leading + axis
        before, behind = sizes_of(x)[:dim], sizes_of(x)[dim + 2 :]
        x = x.reshape((*before, kernel * out, *behind))
        x = _take(x, dim, windows.readers(axis).reshape(-1), kernel * out, nothing)
        parts = x.reshape((*before, kernel, size, *behind))
        # Not every backend has sums of truth values that are not numbers.
        x = parts.any(dim) if x.dtype is bool_ else parts.sum(dim=(dim,), dtype=x.dtype)
    return x


def _order(leading: int, count: int, opened: bool) -> Ints:
    """From (k, o, k, o, ...) to (k, k, ..., o, o, ...) or back."""
    order = list(range(leading))
    if opened:
        order += [leading + 2 * axis for axis in range(count)]
        order += [leading + 2 * axis + 1 for axis in range(count)]
    else:
        for axis in range(count):
            order += [leading + axis, leading + count + axis]
    return tuple(order)


def _take(x: Tensor, dim: int, places: Any, size: int, fill: Tensor) -> Tensor:
    """Elements along a dimension, `fill` where there are none."""
    inside = (places >= 0) & (places < size)
    if size == 0 or not inside.any():
        shape = (*sizes_of(x)[:dim], places.size, *sizes_of(x)[dim + 1 :])
        return fill.expand(shape)
    found = x.index_select(dim, index_tensor(np.where(inside, places, 0), x))
    if inside.all():
        return found
    mask = inside.reshape((places.size,) + (1,) * (x.ndim - dim - 1))
    return F.where(mask_tensor(mask, x), found, fill)
