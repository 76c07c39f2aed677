"""Arguments of pooling, in PyTorch's words; signals, images and volumes are (*, C, *sizes)."""

from __future__ import annotations

from typing import Final

from plugrad._generated.settings import Pooling
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import BOOL, COMPLEX, FLOATING, int64
from plugrad.ops.windows import Windows, window_count
from plugrad.tensor.base import TensorBase, ndim_of, sizes_of

Ints = tuple[int, ...]

# What the dimensions are called in messages, and how many there are in words.
_AXES: Final = "THW"
_WORDS: Final = {1: "one int", 2: "two ints", 3: "three ints"}


def per_dimension(name: str, values: Ints, spatial: int) -> Ints:
    """A value for each of the spatial dimensions."""
    if len(values) == spatial:
        return values
    if len(values) == 1:
        return values * spatial
    raise RuntimeError(f"{name} must either be a single int, or a tuple of {_WORDS[spatial]}")


def named(name: str, values: Ints) -> str:
    """Values with the names of their dimensions: "dT: 1 dH: 2 dW: 2"."""
    axes = _AXES[len(_AXES) - len(values) :]
    return " ".join([f"{name}{axes[i]}: {value}" for i, value in enumerate(values)])


def pooling_windows(operator: str, self: TensorBase, settings: Pooling, spatial: int) -> Windows:
    """The positions of the windows in the last dimensions."""
    kernel = per_dimension(f"{operator}: kernel_size", settings.kernel_size, spatial)
    step = kernel
    if settings.stride:
        step = per_dimension(f"{operator}: stride", settings.stride, spatial)
    pad = per_dimension(f"{operator}: padding", settings.padding, spatial)
    spread = per_dimension(f"{operator}: dilation", settings.dilation, spatial)
    if min(step) == 0 or min(kernel) == 0:
        raise RuntimeError("stride should not be zero")
    if min(step) < 0:
        raise RuntimeError(f"stride should be greater than zero, but got {named('d', step)}")
    if min(spread) <= 0:
        raise RuntimeError(
            f"dilation should be greater than zero, but got {named('dilation', spread)}"
        )
    for i in range(spatial):
        if pad[i] < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {pad[i]}")
        if 2 * pad[i] > (kernel[i] - 1) * spread[i] + 1:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got "
                f"pad={pad[i]}, kernel_size={kernel[i]} and dilation={spread[i]}"
            )
        if pad[i] > kernel[i] // 2:
            raise RuntimeError(
                "pad should be smaller than or equal to half of kernel size, but got "
                f"{named('k', kernel)} {named('pad', pad)}"
            )
    shape = sizes_of(self)
    sizes = shape[len(shape) - spatial :]
    ceil = settings.ceil_mode
    out = tuple(
        [
            window_count(sizes[i], kernel[i], step[i], pad[i], spread[i], ceil)
            for i in range(spatial)
        ]
    )
    if min(out) < 1:
        planes = shape[len(shape) - spatial - 1]
        raise RuntimeError(
            f"Given input size: ({_by(planes, sizes)}). Calculated output size: "
            f"({_by(planes, out)}). Output size is too small"
        )
    return Windows(sizes, kernel, step, pad, spread, out)


def _by(planes: int, sizes: Ints) -> str:
    return "x".join([str(planes), *[str(size) for size in sizes]])


def check_images(self: TensorBase, spatial: int) -> None:
    """RuntimeError unless there are channels and elements in each of them."""
    shape = sizes_of(self)
    some, many = spatial + 1, spatial + 2
    if len(shape) != some and len(shape) != many:
        raise RuntimeError(f"non-empty {some}D or {many}D (batch mode) tensor expected for input")
    for size in shape[len(shape) - some :]:
        if size == 0:
            raise RuntimeError(
                f"Expected {some}D or {many}D (batch mode) tensor with optional 0 dim batch size "
                f"for input, but got:{list(shape)}"
            )


def check_ranks(operator: str, self: TensorBase) -> None:
    """RuntimeError unless a tensor is one of signals, (N, C, L) or (C, L)."""
    if ndim_of(self) != 2 and ndim_of(self) != 3:
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {ndim_of(self)}-dimensional tensor for "
            "argument #1 "
            f"'self' (while checking arguments for {operator})"
        )


def _max_pool(self: TensorBase, settings: Pooling, spatial: int) -> tuple[object, ...]:
    operator = f"max_pool{spatial}d"
    check_images(self, spatial)
    if self.dtype.category == BOOL or self.dtype.category == COMPLEX:
        raise not_implemented(operator, self.dtype)
    return (self, *pooling_windows(operator, self, settings, spatial).values())


def _max_pool_backward(
    grad_output: TensorBase, self: TensorBase, settings: Pooling, indices: TensorBase, spatial: int
) -> tuple[object, ...]:
    windows = pooling_windows(f"max_pool{spatial}d", self, settings, spatial)
    return (grad_output, sizes_of(self), indices, *windows.values())


def _avg_pool(self: TensorBase, settings: Pooling, spatial: int) -> tuple[object, ...]:
    operator = f"avg_pool{spatial}d"
    if settings.divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    check_images(self, spatial)
    if self.dtype.category != FLOATING and self.dtype is not int64:
        raise not_implemented(f"{operator}_out_frame", self.dtype)
    windows = pooling_windows(operator, self, settings, spatial)
    return (self, *windows.values(), settings.count_include_pad, settings.divisor_override)


def _avg_pool_backward(
    grad_output: TensorBase, self: TensorBase, settings: Pooling, spatial: int
) -> tuple[object, ...]:
    windows = pooling_windows(f"avg_pool{spatial}d", self, settings, spatial)
    divided = (settings.count_include_pad, settings.divisor_override)
    return (grad_output, sizes_of(self), *windows.values(), *divided)


def max_pool2d_with_indices(self: TensorBase, settings: Pooling) -> tuple[object, ...]:
    return _max_pool(self, settings, 2)


def max_pool3d_with_indices(self: TensorBase, settings: Pooling) -> tuple[object, ...]:
    return _max_pool(self, settings, 3)


def max_pool2d_with_indices_backward(
    grad_output: TensorBase, self: TensorBase, settings: Pooling, indices: TensorBase
) -> tuple[object, ...]:
    return _max_pool_backward(grad_output, self, settings, indices, 2)


def max_pool3d_with_indices_backward(
    grad_output: TensorBase, self: TensorBase, settings: Pooling, indices: TensorBase
) -> tuple[object, ...]:
    return _max_pool_backward(grad_output, self, settings, indices, 3)


def avg_pool2d(self: TensorBase, settings: Pooling) -> tuple[object, ...]:
    return _avg_pool(self, settings, 2)


def avg_pool3d(self: TensorBase, settings: Pooling) -> tuple[object, ...]:
    prepared = _avg_pool(self, settings, 3)
    sizes = sizes_of(self)[ndim_of(self) - 3 :]
    kernel = per_dimension("avg_pool3d: kernel_size", settings.kernel_size, 3)
    for i in range(3):
        if sizes[i] < kernel[i]:
            raise RuntimeError(
                f"input image ({named('', sizes)}) smaller than kernel size ({named('k', kernel)})"
            )
    return prepared


def avg_pool2d_backward(
    grad_output: TensorBase, self: TensorBase, settings: Pooling
) -> tuple[object, ...]:
    return _avg_pool_backward(grad_output, self, settings, 2)


def avg_pool3d_backward(
    grad_output: TensorBase, self: TensorBase, settings: Pooling
) -> tuple[object, ...]:
    return _avg_pool_backward(grad_output, self, settings, 3)
