"""Raw kernels of pooling and convolution, made of functions that take `Windows`."""

from __future__ import annotations

# Interpreted: each backend calls it once for each of its kernels, which array libraries compile.
from collections.abc import Callable
from typing import Any, Final

from plugrad.ops.windows import Windows, convolution_windows

Kernel = Callable[..., Any]


def _convolution(x: Any, weight: Any, bias: Any, *steps: Any) -> tuple[Any, ...]:
    stride, padding, dilation, transposed, output_padding, groups = steps
    windows = convolution_windows(
        x.shape[2:], weight.shape[2:], stride, padding, dilation, transposed, output_padding
    )
    return x, weight, bias, windows, transposed, groups


def _convolution_backward(grad: Any, x: Any, weight: Any, *steps: Any) -> tuple[Any, ...]:
    stride, padding, dilation, transposed, groups, mask = steps
    read, made = (grad, x) if transposed else (x, grad)
    sizes, kernel, out = read.shape[2:], weight.shape[2:], made.shape[2:]
    windows = Windows(sizes, kernel, stride, padding, dilation, out)
    return grad, x, weight, windows, transposed, groups, mask


def _max_pool2d(x: Any, *values: Any) -> tuple[Any, ...]:
    return x, Windows(x.shape[-2:], *values)


def _max_pool2d_backward(grad: Any, shape: Any, indices: Any, *values: Any) -> tuple[Any, ...]:
    return grad, shape, indices, Windows(shape[-2:], *values)


def _avg_pool2d(x: Any, *values: Any) -> tuple[Any, ...]:
    return x, Windows(x.shape[-2:], *values[:5]), *values[5:]


def _avg_pool2d_backward(grad: Any, shape: Any, *values: Any) -> tuple[Any, ...]:
    return grad, shape, Windows(shape[-2:], *values[:5]), *values[5:]


# For each operator, what makes of its raw kernel's arguments those of a function of windows.
_ARGUMENTS: Final[dict[str, Callable[..., tuple[Any, ...]]]] = {
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
    arguments = _ARGUMENTS[operator]

    def kernel(*args: Any) -> Any:
        return function(*arguments(*args))

    def with_leading(*args: Any) -> Any:
        return function(*args[:leading], *arguments(*args[leading:]))

    return with_leading if leading else kernel
