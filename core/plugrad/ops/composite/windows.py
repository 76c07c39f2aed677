"""Windows that slide over the last dimensions of a tensor, and their transpose, one dimension at a
time: each takes elements along the dimension by an index and lets a mask put in what lies outside.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import numpy as np

from plugrad._generated import functions as F
from plugrad.dtype import FLOATING, float32
from plugrad.ops.composite.positions import index_tensor, mask_tensor, zero_like
from plugrad.tensor.base import TensorBase, sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Ints = tuple[int, ...]


@final
class Windows:
    """Where windows stand: for each of the last dimensions of a tensor, in their order.

    Attributes:
        sizes: of the dimensions; kernel, stride, padding, dilation: of the windows.
        out: how many windows there are along each.
    """

    def __init__(
        self, sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, out: Ints
    ) -> None:
        self.sizes = sizes
        self.kernel = kernel
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.out = out

    def places(self, axis: int) -> Any:
        """Where along a dimension each tap of each window reads, (taps, windows)."""
        taps = np.arange(self.kernel[axis]).reshape((self.kernel[axis], 1)) * self.dilation[axis]
        return taps + np.arange(self.out[axis]) * self.stride[axis] - self.padding[axis]

    def open(self, x: Tensor, fill: Tensor) -> Tensor:
        """What each tap of each window reads, (..., *sizes) to (..., *kernel, *out); `fill` is what
        the padding consists of."""
        leading = x.ndim - len(self.sizes)
        for axis in range(len(self.sizes)):
            x = _take(x, leading + axis, self.places(axis).reshape(-1), self.sizes[axis], fill)
        apart: list[int] = []
        for axis in range(len(self.sizes)):
            apart += [self.kernel[axis], self.out[axis]]
        spread = x.reshape((*sizes_of(x)[:leading], *apart))
        return spread.permute(self._order(leading, True)).contiguous()

    def fold(self, taps: Tensor) -> Tensor:
        """The transpose: what taps read is added up where it was read, (..., *kernel, *out) to
        (..., *sizes)."""
        count = len(self.sizes)
        leading = taps.ndim - 2 * count
        x = taps.permute(self._order(leading, False)).contiguous()
        nothing = zero_like(x)
        for axis in range(count):
            kernel, out, size = self.kernel[axis], self.out[axis], self.sizes[axis]
            dim = leading + axis
            before, behind = sizes_of(x)[:dim], sizes_of(x)[dim + 2 :]
            x = x.reshape((*before, kernel * out, *behind))
            x = _take(x, dim, self._readers(axis), kernel * out, nothing)
            x = x.reshape((*before, kernel, size, *behind)).sum(dim=(dim,), dtype=x.dtype)
        return x

    def _readers(self, axis: int) -> Any:
        """For each tap and place along a dimension the tap and window that read it, as one number;
        -1 if none did."""
        kernel, out = self.kernel[axis], self.out[axis]
        taps = np.arange(kernel).reshape((kernel, 1))
        reach = np.arange(self.sizes[axis]) + self.padding[axis] - taps * self.dilation[axis]
        window = reach // self.stride[axis]
        hits = (reach % self.stride[axis] == 0) & (window >= 0) & (window < out)
        return np.where(hits, taps * out + window, -1).reshape(-1)

    def _order(self, leading: int, opened: bool) -> Ints:
        """From (k, o, k, o, ...) to (k, k, ..., o, o, ...) or back."""
        count = len(self.sizes)
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


def widened(x: TensorBase) -> Any:
    """16-bit floats as float32, to add many of them up."""
    narrow = x.dtype.itemsize == 2 and x.dtype.category >= FLOATING
    return F._to_copy(x, float32) if narrow else x


def in_dtype_of(x: Tensor, like: TensorBase) -> Tensor:
    """A result in another tensor's dtype."""
    return x if x.dtype is like.dtype else F._to_copy(x, like.dtype)
