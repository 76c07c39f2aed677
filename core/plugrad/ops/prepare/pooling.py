"""Arguments of pooling, in PyTorch's words."""

from __future__ import annotations

from plugrad._generated.settings import Pooling
from plugrad.dtype import BOOL
from plugrad.ops.windows import Windows, window_count
from plugrad.tensor.base import TensorBase, sizes_of


def pair(name: str, values: tuple[int, ...]) -> tuple[int, int]:
    """A value for each of height and width."""
    if len(values) == 1:
        return (values[0], values[0])
    if len(values) == 2:
        return (values[0], values[1])
    raise RuntimeError(f"{name} must either be a single int, or a tuple of two ints")


def pooling_windows(operator: str, self: TensorBase, settings: Pooling) -> Windows:
    """Where the windows stand in the images' last two dimensions."""
    kernel = pair(f"{operator}: kernel_size", settings.kernel_size)
    step = pair(f"{operator}: stride", settings.stride) if settings.stride else kernel
    pad = pair(f"{operator}: padding", settings.padding)
    spread = pair(f"{operator}: dilation", settings.dilation)
    if min(step) == 0 or min(kernel) == 0:
        raise RuntimeError("stride should not be zero")
    if min(step) < 0:
        raise RuntimeError(
            f"stride should be greater than zero, but got dH: {step[0]} dW: {step[1]}"
        )
    if min(spread) <= 0:
        raise RuntimeError(
            "dilation should be greater than zero, but got "
            f"dilationH: {spread[0]} dilationW: {spread[1]}"
        )
    for i in range(2):
        if pad[i] < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {pad[i]}")
        if 2 * pad[i] > (kernel[i] - 1) * spread[i] + 1:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={pad[i]}, kernel_size={kernel[i]} and dilation={spread[i]}"
            )
    shape = sizes_of(self)
    ceil = settings.ceil_mode
    sizes = [
        window_count(shape[len(shape) - 2 + i], kernel[i], step[i], pad[i], spread[i], ceil)
        for i in range(2)
    ]
    if min(sizes) < 1:
        planes = shape[len(shape) - 3]
        raise RuntimeError(
            f"Given input size: ({planes}x{shape[-2]}x{shape[-1]}). Calculated output size: "
            f"({planes}x{sizes[0]}x{sizes[1]}). Output size is too small"
        )
    return Windows(shape[len(shape) - 2 :], kernel, step, pad, spread, (sizes[0], sizes[1]))


def _check_images(self: TensorBase) -> None:
    shape = sizes_of(self)
    if len(shape) != 3 and len(shape) != 4:
        raise RuntimeError("non-empty 3D or 4D (batch mode) tensor expected for input")
    for size in shape[len(shape) - 3 :]:
        if size == 0:
            raise RuntimeError(
                "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, "
                f"but got:{list(shape)}"
            )


def max_pool2d_with_indices(self: TensorBase, settings: Pooling) -> tuple[object, ...]:
    _check_images(self)
    if self.dtype.category == BOOL:
        raise NotImplementedError("\"max_pool2d\" not implemented for 'Bool'")
    return (self, *pooling_windows("max_pool2d", self, settings).values())


def max_pool2d_with_indices_backward(
    grad_output: TensorBase, self: TensorBase, settings: Pooling, indices: TensorBase
) -> tuple[object, ...]:
    windows = pooling_windows("max_pool2d", self, settings)
    return (grad_output, sizes_of(self), indices, *windows.values())


def avg_pool2d(self: TensorBase, settings: Pooling) -> tuple[object, ...]:
    if settings.divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    _check_images(self)
    if self.dtype.category == BOOL:
        raise NotImplementedError("\"avg_pool2d_out_frame\" not implemented for 'Bool'")
    windows = pooling_windows("avg_pool2d", self, settings)
    return (self, *windows.values(), settings.count_include_pad, settings.divisor_override)


def avg_pool2d_backward(
    grad_output: TensorBase, self: TensorBase, settings: Pooling
) -> tuple[object, ...]:
    windows = pooling_windows("avg_pool2d", self, settings)
    divided = (settings.count_include_pad, settings.divisor_override)
    return (grad_output, sizes_of(self), *windows.values(), *divided)
