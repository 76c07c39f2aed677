"""Raw kernels of pooling and convolution, made of functions that take `Windows`."""

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


def _max_pool2d(function: Kernel) -> Kernel:
    def kernel(x: Any, size: Ints, step: Ints, pad: Ints, spread: Ints, out: Ints) -> Any:
        return function(x, Windows(x.shape[-2:], size, step, pad, spread, out))

    return kernel


def _max_pool2d_backward(function: Kernel) -> Kernel:
    def kernel(grad: Any, shape: Ints, indices: Any, *values: Ints) -> Any:
        return function(grad, shape, indices, Windows(shape[-2:], *values))

    return kernel


def _avg_pool2d(function: Kernel) -> Kernel:
    def kernel(
        x: Any,
        size: Ints,
        step: Ints,
        pad: Ints,
        spread: Ints,
        out: Ints,
        count_include_pad: bool,
        divisor_override: int | None,
    ) -> Any:
        windows = Windows(x.shape[-2:], size, step, pad, spread, out)
        return function(x, windows, count_include_pad, divisor_override)

    return kernel


def _avg_pool2d_backward(function: Kernel) -> Kernel:
    def kernel(grad: Any, shape: Ints, *values: Any) -> Any:
        return function(grad, shape, Windows(shape[-2:], *values[:5]), *values[5:])

    return kernel


# For each operator, what makes a raw kernel of a function of windows.
_ADAPTERS: Final[dict[str, Callable[[Kernel], Kernel]]] = {
    "avg_pool2d": _avg_pool2d,
    "avg_pool2d_backward": _avg_pool2d_backward,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "max_pool2d_with_indices": _max_pool2d,
    "max_pool2d_with_indices_backward": _max_pool2d_backward,
}


def on_windows(operator: str, function: Kernel, leading: int = 0) -> Kernel:
    """The raw kernel of an operator from a function that takes `Windows`.

    Args:
        leading: how many arguments of the function's own come first.

    Functions get, beside arrays:

    * ``convolution(x, weight, bias, windows, transposed, groups)``,
      ``convolution_backward(grad, x, weight, windows, transposed, groups, mask)``: windows over the
      last dimensions of what the convolution reads; a transposed one reads its result.
    * ``max_pool2d_with_indices(x, windows)``, ``avg_pool2d(x, windows, count_include_pad,
      divisor_override)``.
    * ``max_pool2d_with_indices_backward(grad, shape, indices, windows)``,
      ``avg_pool2d_backward(grad, shape, windows, count_include_pad, divisor_override)``: `shape` is
      that of the images.

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
