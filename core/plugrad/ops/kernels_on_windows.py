"""Raw kernels of pooling and convolution, made from functions that take `Windows`."""

from __future__ import annotations

# Interpreted: each backend calls it once for each of its kernels, which array libraries compile.
from collections.abc import Callable
from typing import Any, Final

from plugrad.ops.windows import Windows, convolution_windows

Kernel = Callable[..., Any]
Ints = tuple[int, ...]


def _convolution(function: Kernel) -> Kernel:
    def kernel(
        x: Any,
        weight: Any,
        bias: Any,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
        transposed: bool,
        output_padding: Ints,
        groups: int,
    ) -> Any:
        windows = convolution_windows(
            x.shape[2:], weight.shape[2:], stride, padding, dilation, transposed, output_padding
        )
        return function(x, weight, bias, windows, transposed, groups)

    return kernel


def _convolution_backward(function: Kernel) -> Kernel:
    def kernel(
        grad: Any,
        x: Any,
        weight: Any,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
        transposed: bool,
        groups: int,
        mask: tuple[bool, bool, bool],
    ) -> Any:
        read, made = (grad, x) if transposed else (x, grad)
        windows = Windows(
            read.shape[2:], weight.shape[2:], stride, padding, dilation, made.shape[2:]
        )
        return function(grad, x, weight, windows, transposed, groups, mask)

    return kernel


def _windows(shape: Ints, size: Ints, step: Ints, pad: Ints, spread: Ints, out: Ints) -> Windows:
    """Over as many of the last dimensions as a window has."""
    return Windows(shape[len(shape) - len(size) :], size, step, pad, spread, out)


def _of_input(function: Kernel) -> Kernel:
    def kernel(x: Any, *values: Ints) -> Any:
        return function(x, _windows(x.shape, *values))

    return kernel


def _max_pool_backward(function: Kernel) -> Kernel:
    def kernel(grad: Any, shape: Ints, indices: Any, *values: Ints) -> Any:
        return function(grad, shape, indices, _windows(shape, *values))

    return kernel


def _avg_pool(function: Kernel) -> Kernel:
    def kernel(x: Any, *values: Any) -> Any:
        return function(x, _windows(x.shape, *values[:5]), *values[5:])

    return kernel


def _avg_pool_backward(function: Kernel) -> Kernel:
    def kernel(grad: Any, shape: Ints, *values: Any) -> Any:
        return function(grad, shape, _windows(shape, *values[:5]), *values[5:])

    return kernel


def _col2im(function: Kernel) -> Kernel:
    def kernel(columns: Any, sizes: Ints, *values: Ints) -> Any:
        return function(columns, Windows(sizes, *values))

    return kernel


# For each operator, the function that makes a raw kernel from a function of windows.
_ADAPTERS: Final[dict[str, Callable[[Kernel], Kernel]]] = {
    "avg_pool2d": _avg_pool,
    "avg_pool2d_backward": _avg_pool_backward,
    "avg_pool3d": _avg_pool,
    "avg_pool3d_backward": _avg_pool_backward,
    "col2im": _col2im,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "im2col": _of_input,
    "max_pool2d_with_indices": _of_input,
    "max_pool2d_with_indices_backward": _max_pool_backward,
    "max_pool3d_with_indices": _of_input,
    "max_pool3d_with_indices_backward": _max_pool_backward,
}


def on_windows(operator: str, function: Kernel, leading: int = 0) -> Kernel:
    """The raw kernel of an operator from a function that takes `Windows`.

    Args:
        leading: how many of the function's own arguments come first.

    Functions get, beside arrays:

    * ``convolution(x, weight, bias, windows, transposed, groups)``,
      ``convolution_backward(grad, x, weight, windows, transposed, groups, mask)``: windows over the
      last dimensions of the convolution's input; a transposed one has them over its result.
    * ``max_pool2d_with_indices(x, windows)``, ``avg_pool2d(x, windows, count_include_pad,
      divisor_override)``.
    * ``max_pool2d_with_indices_backward(grad, shape, indices, windows)``,
      ``avg_pool2d_backward(grad, shape, windows, count_include_pad, divisor_override)``: `shape` is
      the shape of the images. The four of ``pool3d`` get the same, with windows over three
      dimensions.
    * ``im2col(x, windows)`` and ``col2im(columns, windows)``: images (..., C, H, W) to columns
      (..., C * taps, windows), and back.

    >>> import numpy as np
    >>> from plugrad.plugins.windows import on_windows
    >>> kernel = on_windows("max_pool2d_with_indices", lambda x, windows: windows.taps())
    >>> kernel(np.ones((1, 2, 4)), (1, 2), (1, 2), (0, 0), (1, 1), (2, 2))
    [(0, 0), (0, 1)]
    """
    adapter = _ADAPTERS[operator]
    if not leading:
        return adapter(function)
    arguments = adapter(lambda *args: args)

    def kernel(*args: Any) -> Any:
        return function(*args[:leading], *arguments(*args[leading:]))

    return kernel
