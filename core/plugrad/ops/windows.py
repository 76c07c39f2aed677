"""Windows that slide over the last dimensions of an array: their positions and the elements they
read.

It computes with numbers and shapes only, so the core's composites and the kernels of backends share
it; backends import it from `plugrad.plugins.windows`.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, final

import numpy as np

Ints = tuple[int, ...]


def window_count(
    size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool = False
) -> int:
    """How many windows fit along a dimension of a size.

    With `ceil_mode` the last one may reach over the end of the padding, but not start there.

    >>> from plugrad.plugins.windows import window_count
    >>> window_count(6, 3, 2, 0, 1), window_count(6, 3, 2, 0, 1, ceil_mode=True)
    (2, 3)
    """
    free = size + 2 * padding - dilation * (kernel - 1) - 1 + (stride - 1 if ceil_mode else 0)
    count = free // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def transposed_sizes(
    counts: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    output_padding: Ints | None = None,
) -> Ints:
    """The least sizes in which windows fit that often, and `output_padding` more: what a transposed
    convolution of an input with the sizes `counts` gives.

    >>> from plugrad.plugins.windows import transposed_sizes
    >>> transposed_sizes((3,), (3,), (2,), (1,), (1,))
    (5,)
    >>> transposed_sizes((3,), (3,), (2,), (1,), (1,), (1,))
    (6,)
    """
    extra = (0,) * len(counts) if output_padding is None else output_padding
    return tuple(
        [
            (counts[i] - 1) * stride[i]
            - 2 * padding[i]
            + dilation[i] * (kernel[i] - 1)
            + extra[i]
            + 1
            for i in range(len(counts))
        ]
    )


def convolution_windows(
    sizes: Ints,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool = False,
    output_padding: Ints | None = None,
) -> Windows:
    """The windows of a convolution of an input with the spatial sizes `sizes`.

    They read the input, one for each position of the output. A transposed convolution is the
    transpose of a convolution, so its windows are in the output.

    >>> from plugrad.plugins.windows import convolution_windows
    >>> convolution_windows((8, 8), (3, 3), (2, 2), (1, 1), (1, 1)).out
    (4, 4)
    >>> convolution_windows((4, 4), (3, 3), (2, 2), (1, 1), (1, 1), transposed=True).sizes
    (7, 7)
    """
    if transposed:
        grown = transposed_sizes(sizes, kernel, stride, padding, dilation, output_padding)
        return Windows(grown, kernel, stride, padding, dilation, sizes)
    out = [
        window_count(sizes[i], kernel[i], stride[i], padding[i], dilation[i])
        for i in range(len(sizes))
    ]
    return Windows(sizes, kernel, stride, padding, dilation, tuple(out))


@final
class Windows:
    """Windows over the last dimensions of an array, for each dimension in their order.

    The first window starts `padding` elements in front of the array, each further one `stride`
    after the one before; a window reads `kernel` elements, its taps, that are `dilation` apart.
    Where taps read outside the array there is padding. `(sizes, *rest)` is what the kernels of
    pooling get: `Windows(x.shape[-2:], kernel, stride, padding, dilation, out)`.

    Attributes:
        sizes: of the array's dimensions; kernel, stride, padding, dilation: of the windows.
        out: how many windows there are along each.

    >>> from plugrad.plugins.windows import Windows
    >>> windows = Windows((5,), (3,), (2,), (1,), (1,), (3,))
    >>> windows.places(0).T.tolist()
    [[-1, 0, 1], [1, 2, 3], [3, 4, 5]]
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

    def values(self) -> tuple[object, ...]:
        """The values that kernels of pooling get: all except the sizes."""
        return (self.kernel, self.stride, self.padding, self.dilation, self.out)

    def extents(self) -> Ints:
        """How far the last window starts, counted from the first one's start."""
        out, stride = self.out, self.stride
        return tuple([(out[i] - 1) * stride[i] + 1 for i in range(len(out))])

    def padded(self) -> Ints:
        """Sizes that hold the array and what windows reach, from the first one's start."""
        kernel, out, padding, sizes = self.kernel, self.out, self.padding, self.sizes
        found: list[int] = []
        for i, stride in enumerate(self.stride):
            reach = (out[i] - 1) * stride + (kernel[i] - 1) * self.dilation[i] + 1
            found.append(max(reach, padding[i] + sizes[i]))
        return tuple(found)

    def edges(self) -> list[tuple[int, int]]:
        """The padding before and after the array that gives those sizes."""
        padded = self.padded()
        return [
            (self.padding[i], padded[i] - self.padding[i] - self.sizes[i])
            for i in range(len(padded))
        ]

    def interior(self) -> tuple[Any, ...]:
        """The index of the array within the padded one."""
        padding, sizes = self.padding, self.sizes
        inside = [slice(padding[i], padding[i] + sizes[i]) for i in range(len(sizes))]
        return (..., *inside)

    def taps(self) -> list[Ints]:
        """The elements of a window, as indices into it, the last dimension's fastest."""
        return list(itertools.product(*[range(size) for size in self.kernel]))

    def reads(self) -> list[tuple[Any, ...]]:
        """For each tap, in the order of `taps`, the index of the elements that it reads in the
        padded array."""
        along: list[list[slice]] = []
        for axis, extent in enumerate(self.extents()):
            stride, dilation = self.stride[axis], self.dilation[axis]
            starts = [tap * dilation for tap in range(self.kernel[axis])]
            along.append([slice(start, start + extent, stride) for start in starts])
        return [(..., *found) for found in itertools.product(*along)]

    def disjoint(self) -> bool:
        """Whether no element can be read by two windows."""
        for i, stride in enumerate(self.stride):
            if stride < (self.kernel[i] - 1) * self.dilation[i] + 1:
                return False
        return True

    def pad(self, xp: Any, x: Any, fill: Any) -> Any:
        """The array padded with `fill`; itself if windows do not reach beyond it.

        For array libraries with mutable arrays, like NumPy; others have a function that takes
        `edges`.
        """
        padded = self.padded()
        if padded == self.sizes:
            return x
        shape = (*x.shape[: x.ndim - len(padded)], *padded)
        made = xp.zeros(shape, x.dtype) if fill == 0 else xp.full(shape, fill, x.dtype)
        made[self.interior()] = x
        return made

    def starts(self, axis: int) -> Any:
        """Where along a dimension of the array each window starts, (windows,) of int64."""
        return np.arange(self.out[axis]) * self.stride[axis] - self.padding[axis]

    def places(self, axis: int) -> Any:
        """Where along a dimension of the array each tap reads, (taps, windows) of int64."""
        taps = np.arange(self.kernel[axis]).reshape((self.kernel[axis], 1))
        return taps * self.dilation[axis] + self.starts(axis)

    def tap_places(self) -> Any:
        """Where each tap of each window reads, as an index into the flattened array, (taps, *out)
        of int64; what reads padding has any number.

        >>> from plugrad.plugins.windows import Windows
        >>> windows = Windows((3, 4), (1, 2), (1, 2), (0, 0), (1, 1), (3, 2))
        >>> windows.tap_places()[1].tolist()
        [[1, 3], [5, 7], [9, 11]]
        """
        count = len(self.sizes)
        found: Any = np.zeros((), np.int64)
        for axis, size in enumerate(self.sizes):
            shape = [1] * (2 * count)
            shape[axis], shape[count + axis] = self.kernel[axis], self.out[axis]
            found = found * size + self.places(axis).reshape(shape)
        return found.reshape((math.prod(self.kernel), *self.out))

    def corners(self) -> Any:
        """Where each window starts, as an index into the flattened array, `out` of int64."""
        found: Any = np.zeros((), np.int64)
        for axis, size in enumerate(self.sizes):
            found = found[..., None] * size + self.starts(axis)
        return found

    def first_taps(self) -> Any:
        """The number of the first tap of each window that reads no padding, of int64; taps are
        counted row by row.

        >>> from plugrad.plugins.windows import Windows
        >>> Windows((5,), (3,), (2,), (1,), (1,), (3,)).first_taps().tolist()
        [1, 0, 0]
        """
        found: Any = np.zeros((), np.int64)
        for axis, kernel in enumerate(self.kernel):
            outside = np.maximum(-self.starts(axis), 0)
            found = found[..., None] * kernel + -(-outside // self.dilation[axis])
        return found

    def readers(self, axis: int) -> Any:
        """The inverse: for each tap and place along a dimension, (taps, size) of int64, the tap and
        window that read it as one number, tap * windows + window; -1 if none did."""
        kernel, out = self.kernel[axis], self.out[axis]
        taps = np.arange(kernel).reshape((kernel, 1))
        reach = np.arange(self.sizes[axis]) + self.padding[axis] - taps * self.dilation[axis]
        window = reach // self.stride[axis]
        hits = (reach % self.stride[axis] == 0) & (window >= 0) & (window < out)
        return np.where(hits, taps * out + window, -1)

    def divisor(self, count_include_pad: bool, divisor_override: int | None = None) -> Any:
        """What average pooling divides each window's sum by, an `int` if that is one number for all
        of them, else an array of the shape `out`, int64.

        With `count_include_pad` padding counts, except positions behind it that `ceil_mode` lets
        windows reach. Taps are taken to be side by side: average pooling has no dilation.
        """
        if divisor_override is not None:
            return divisor_override
        full = 1
        for size in self.kernel:
            full *= size
        uneven = [i for i in range(len(self.out)) if not self._is_full(i, count_include_pad)]
        if not uneven:
            return full
        total = self._counts(0, count_include_pad)
        for axis in range(1, len(self.out)):
            total = np.multiply.outer(total, self._counts(axis, count_include_pad))
        return total

    def _is_full(self, axis: int, count_include_pad: bool) -> bool:
        """Whether each window averages all of its elements, along one dimension."""
        size, pad = self.sizes[axis], self.padding[axis]
        end = (self.out[axis] - 1) * self.stride[axis] + self.kernel[axis] - pad
        return end <= size + pad if count_include_pad else end <= size and pad == 0

    def _counts(self, axis: int, count_include_pad: bool) -> Any:
        """How many elements each window averages, along one dimension."""
        size, pad = self.sizes[axis], self.padding[axis]
        start = self.starts(axis)
        end = np.minimum(start + self.kernel[axis], size + pad)
        if count_include_pad:
            return end - start
        return np.minimum(end, size) - np.maximum(start, 0)
