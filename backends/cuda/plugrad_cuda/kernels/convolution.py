"""Kernels of convolution as matrix products: cuBLAS on the windows laid out as columns.

The windows of (N, C, *sizes) are copied to (N, groups, C / groups * taps, positions), one launch,
and multiplied with the filters (groups, O / groups, C / groups * taps), one batched product with
the output in its final layout as the result. For dtypes with CUDA source, `plugrad_cuda.fused`
needs no columns.
"""

from __future__ import annotations

import math
from typing import Any

from plugrad.plugins.windows import Windows, on_windows
from plugrad_cuda.kernels.family import Family, accumulator
from plugrad_cuda.kernels.namespace import Array, Kernel

Ints = tuple[int, ...]


class Convolution(Family):
    """Convolutions in any number of dimensions, transposed ones, and their gradients."""

    def kernels(self) -> dict[str, Kernel]:
        return {
            "convolution": on_windows("convolution", self.convolution),
            "convolution_backward": on_windows("convolution_backward", self.convolution_backward),
        }

    def columns(self, x: Array, windows: Windows, groups: int) -> Array:
        """(N, C, *sizes) as (N, groups, C / groups * taps, positions)."""
        padded = windows.pad(self.xp, x, 0)
        spatial = padded.strides[2:]
        view = self.xp.lib.stride_tricks.as_strided(
            padded,
            (*x.shape[:2], *windows.kernel, *windows.out),
            (
                *padded.strides[:2],
                *(s * d for s, d in zip(spatial, windows.dilation, strict=True)),
                *(s * t for s, t in zip(spatial, windows.stride, strict=True)),
            ),
        )
        rows = x.shape[1] // groups * math.prod(windows.kernel)
        return view.reshape(x.shape[0], groups, rows, math.prod(windows.out))

    def folded(self, columns: Array, windows: Windows, channels: int) -> Array:
        """Columns summed at the positions of their windows: (N, C, *sizes)."""
        count = columns.shape[0]
        by_tap = columns.reshape(count, channels, math.prod(windows.kernel), *windows.out)
        padded = self.xp.zeros((count, channels, *windows.padded()), columns.dtype)
        for number, read in enumerate(windows.reads()):
            padded[read] += by_tap[:, :, number]
        return self.xp.ascontiguousarray(padded[windows.interior()])

    def forward(self, x: Array, weight: Array, windows: Windows, groups: int) -> Array:
        product = self.ns.matmul(_matrices(weight, groups), self.columns(x, windows, groups))
        return product.reshape(x.shape[0], weight.shape[0], *windows.out)

    def input_gradient(self, grad: Array, weight: Array, windows: Windows, groups: int) -> Array:
        turned = _matrices(weight, groups).swapaxes(1, 2)
        columns = self.ns.matmul(turned, _grouped(grad, groups))
        return self.folded(columns, windows, weight.shape[1] * groups)

    def weight_gradient(
        self, grad: Array, x: Array, shape: Ints, windows: Windows, groups: int
    ) -> Array:
        columns = self.columns(x, windows, groups)
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
        windows: Windows,
        transposed: bool,
        groups: int,
    ) -> Any:
        convolve = self.input_gradient if transposed else self.forward
        out = convolve(x, weight, windows, groups)
        if bias is None:
            return out
        return self.xp.add(out, bias.reshape(-1, *(1 for _ in windows.stride)), out=out)

    def convolution_backward(
        self,
        grad: Array,
        x: Array,
        weight: Array,
        windows: Windows,
        transposed: bool,
        groups: int,
        mask: tuple[bool, bool, bool],
    ) -> tuple[Any, Any, Any]:
        """The gradients toward input, weight and bias; None if not requested."""
        if x.dtype.kind == "c":
            x, weight = self.xp.conjugate(x), self.xp.conjugate(weight)
        to_input = to_weight = to_bias = None
        read, made = (grad, x) if transposed else (x, grad)
        if mask[0]:
            back = self.forward if transposed else self.input_gradient
            to_input = back(grad, weight, windows, groups)
        if mask[1]:
            to_weight = self.weight_gradient(made, read, weight.shape, windows, groups)
        if mask[2]:
            to_bias = self.summed(grad, (0, *range(2, grad.ndim)))
        return to_input, to_weight, to_bias


def _matrices(weight: Array, groups: int) -> Array:
    """(O, C / groups, *kernel) as (groups, O / groups, C / groups * taps)."""
    filters = weight.shape[0]
    return weight.reshape(groups, filters // groups, math.prod(weight.shape[1:]))


def _grouped(grad: Array, groups: int) -> Array:
    """(N, O, *out) as (N, groups, O / groups, positions)."""
    count, filters = grad.shape[:2]
    return grad.reshape(count, groups, filters // groups, math.prod(grad.shape[2:]))
