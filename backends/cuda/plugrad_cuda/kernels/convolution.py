"""Kernels of convolution as matrix products: cuBLAS on the windows laid out as columns.

The windows of (N, C, *sizes) are copied to (N, groups, C / groups * taps, positions), one launch,
and multiplied with the filters (groups, O / groups, C / groups * taps), one batched product whose
result is the output as it should lie. For dtypes that have CUDA source `plugrad_cuda.fused` does
without the columns.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from plugrad_cuda.kernels.family import Family, accumulator
from plugrad_cuda.kernels.namespace import Array, Kernel

Ints = tuple[int, ...]


class Windows:
    """Where the windows of a convolution lie.

    Attributes:
        sizes: spatial sizes of the input.
        padded: of the padded input.
        out: of the output.
    """

    def __init__(
        self, sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
    ) -> None:
        self.sizes = sizes
        self.kernel = kernel
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.padded = tuple(size + 2 * p for size, p in zip(sizes, padding, strict=True))
        self.out = tuple(
            (size - d * (k - 1) - 1) // s + 1
            for size, k, s, d in zip(self.padded, kernel, stride, dilation, strict=True)
        )

    def interior(self) -> tuple[Any, ...]:
        """The padded input without its padding."""
        return (..., *(slice(p, p + n) for p, n in zip(self.padding, self.sizes, strict=True)))

    def taps(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """The number of each of the filter's elements, and which inputs it meets."""
        every = itertools.product(*(range(k) for k in self.kernel))
        for number, tap in enumerate(every):
            spatial = (
                slice(t * d, t * d + (o - 1) * s + 1, s)
                for t, d, o, s in zip(tap, self.dilation, self.out, self.stride, strict=True)
            )
            yield number, (..., *spatial)

    def columns(self, xp: Any, x: Array, groups: int) -> Array:
        """(N, C, *sizes) as (N, groups, C / groups * taps, positions)."""
        padded = x
        if self.padded != self.sizes:
            padded = xp.zeros((*x.shape[:2], *self.padded), x.dtype)
            padded[self.interior()] = x
        spatial = padded.strides[2:]
        view = xp.lib.stride_tricks.as_strided(
            padded,
            (*x.shape[:2], *self.kernel, *self.out),
            (
                *padded.strides[:2],
                *(s * d for s, d in zip(spatial, self.dilation, strict=True)),
                *(s * t for s, t in zip(spatial, self.stride, strict=True)),
            ),
        )
        rows = x.shape[1] // groups * math.prod(self.kernel)
        return view.reshape(x.shape[0], groups, rows, math.prod(self.out))

    def folded(self, xp: Any, columns: Array, channels: int) -> Array:
        """Columns added up where their windows lie: (N, C, *sizes)."""
        count = columns.shape[0]
        by_tap = columns.reshape(count, channels, math.prod(self.kernel), *self.out)
        padded = xp.zeros((count, channels, *self.padded), columns.dtype)
        for number, window in self.taps():
            padded[window] += by_tap[:, :, number]
        return xp.ascontiguousarray(padded[self.interior()])


class Convolution(Family):
    """Convolutions in any number of dimensions, transposed ones, and their gradients."""

    def kernels(self) -> dict[str, Kernel]:
        return {
            "convolution": self.convolution,
            "convolution_backward": self.convolution_backward,
        }

    def forward(self, x: Array, weight: Array, windows: Windows, groups: int) -> Array:
        filters = weight.shape[0]
        matrix = weight.reshape(groups, filters // groups, math.prod(weight.shape[1:]))
        product = self.ns.matmul(matrix, windows.columns(self.xp, x, groups))
        return product.reshape(x.shape[0], filters, *windows.out)

    def input_gradient(self, grad: Array, weight: Array, windows: Windows, groups: int) -> Array:
        filters = weight.shape[0]
        matrix = weight.reshape(groups, filters // groups, math.prod(weight.shape[1:]))
        columns = self.ns.matmul(matrix.swapaxes(1, 2), _grouped(grad, groups))
        return windows.folded(self.xp, columns, weight.shape[1] * groups)

    def weight_gradient(
        self, grad: Array, x: Array, shape: Ints, windows: Windows, groups: int
    ) -> Array:
        columns = windows.columns(self.xp, x, groups)
        each = self.ns.matmul(_grouped(grad, groups), columns.swapaxes(2, 3))
        return self.summed(each, (0,)).reshape(shape)

    def summed(self, a: Array, axis: Ints) -> Array:
        total = self.xp.sum(a, axis=axis, dtype=accumulator(a.dtype))
        return total.astype(a.dtype, copy=False)

    def convolution(
        self,
        x: Array,
        weight: Array,
        bias: Array | None,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
        transposed: bool,
        output_padding: Ints,
        groups: int,
    ) -> Any:
        kernel = weight.shape[2:]
        if transposed:
            sizes = tuple(
                (n - 1) * s - 2 * p + d * (k - 1) + extra + 1
                for n, s, p, d, k, extra in zip(
                    x.shape[2:], stride, padding, dilation, kernel, output_padding, strict=True
                )
            )
            windows = Windows(sizes, kernel, stride, padding, dilation)
            out = self.input_gradient(x, weight, windows, groups)
        else:
            windows = Windows(x.shape[2:], kernel, stride, padding, dilation)
            out = self.forward(x, weight, windows, groups)
        if bias is None:
            return out
        return self.xp.add(out, bias.reshape(-1, *(1 for _ in kernel)), out=out)

    def convolution_backward(
        self,
        grad: Array,
        x: Array,
        weight: Array,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
        transposed: bool,
        groups: int,
        mask: tuple[bool, bool, bool],
    ) -> tuple[Any, Any, Any]:
        """The gradients toward input, weight and bias; None where not wanted."""
        if x.dtype.kind == "c":
            x, weight = self.xp.conjugate(x), self.xp.conjugate(weight)
        to_input = to_weight = to_bias = None
        larger = grad if transposed else x
        windows = Windows(larger.shape[2:], weight.shape[2:], stride, padding, dilation)
        if mask[0]:
            if transposed:
                to_input = self.forward(grad, weight, windows, groups)
            else:
                to_input = self.input_gradient(grad, weight, windows, groups)
        if mask[1]:
            smaller = x if transposed else grad
            to_weight = self.weight_gradient(smaller, larger, weight.shape, windows, groups)
        if mask[2]:
            to_bias = self.summed(grad, (0, *range(2, grad.ndim)))
        return to_input, to_weight, to_bias


def _grouped(grad: Array, groups: int) -> Array:
    """(N, O, *out) as (N, groups, O / groups, positions)."""
    count, filters = grad.shape[:2]
    return grad.reshape(count, groups, filters // groups, math.prod(grad.shape[2:]))
