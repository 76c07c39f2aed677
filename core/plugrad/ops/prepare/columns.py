"""Arguments of `im2col` and `col2im`, in PyTorch's words."""

from __future__ import annotations

import math

from plugrad._generated.settings import Pooling
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import INTEGER
from plugrad.ops.windows import Windows, window_count
from plugrad.tensor.base import TensorBase, sizes_of

Ints = tuple[int, ...]


def im2col(self: TensorBase, settings: Pooling) -> tuple[object, ...]:
    return (self, *columns_windows(self, settings).values())


def col2im(self: TensorBase, output_size: Ints, settings: Pooling) -> tuple[object, ...]:
    windows = images_windows(self, output_size, settings)
    return (self, windows.sizes, *windows.values())


def columns_windows(self: TensorBase, settings: Pooling) -> Windows:
    """The windows that are columns of images (N, C, H, W) or (C, H, W)."""
    _check_settings(settings)
    shape = sizes_of(self)
    if not 3 <= len(shape) <= 4 or 0 in shape[len(shape) - 3 :]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )
    if self.dtype.category == INTEGER:
        raise not_implemented("im2col_out_cpu", self.dtype)
    windows = _windows(shape[len(shape) - 2 :], settings)
    if min(windows.out) < 1:
        raise RuntimeError(
            f"Given input with spatial size {windows.sizes}, kernel_size={windows.kernel}, "
            f"dilation={windows.dilation}, padding={windows.padding}, calculated shape of the "
            f"array of sliding blocks as {windows.out}, but its components must be at least one."
        )
    return windows


def images_windows(self: TensorBase, output_size: Ints, settings: Pooling) -> Windows:
    """The windows in images of a size that columns (N, C * taps, L) or (C * taps, L) are."""
    output_size = _pair(output_size)
    if len(output_size) != 2:
        raise RuntimeError(
            f"It is expected output_size equals to 2, but got size {len(output_size)}"
        )
    _check_settings(settings)
    shape = sizes_of(self)
    ndim = len(shape)
    if not 2 <= ndim <= 3 or 0 in shape[ndim - 2 :]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            f"non-zero dimensions for input, but got: {list(shape)}"
        )
    if self.dtype.category == INTEGER:
        raise not_implemented("col2im_out_cpu", self.dtype)
    windows = _windows(output_size, settings)
    if shape[ndim - 2] % math.prod(windows.kernel) != 0:
        raise RuntimeError(
            f"Expected size of input's dimension {ndim - 2} to be divisible by the product of "
            f"kernel_size, but got input.size({ndim - 2})={shape[ndim - 2]} and "
            f"kernel_size={windows.kernel}."
        )
    rows, columns = windows.out
    if shape[ndim - 1] != rows * columns or min(rows, columns) < 1:
        raise RuntimeError(
            f"Given output_size={windows.sizes}, kernel_size={windows.kernel}, "
            f"dilation={windows.dilation}, padding={windows.padding}, stride={windows.stride}, "
            f"expected size of input's dimension {ndim - 1} to match the calculated number of "
            f"sliding blocks {rows} * {columns} = {rows * columns}, but got "
            f"input.size({ndim - 1})={shape[ndim - 1]}."
        )
    return windows


def _windows(sizes: Ints, settings: Pooling) -> Windows:
    kernel, step = _pair(settings.kernel_size), _pair(settings.stride)
    pad, spread = _pair(settings.padding), _pair(settings.dilation)
    out = tuple([window_count(sizes[i], kernel[i], step[i], pad[i], spread[i]) for i in range(2)])
    return Windows(sizes, kernel, step, pad, spread, out)


def _pair(values: Ints) -> Ints:
    return values * 2 if len(values) == 1 else values


def _check_settings(settings: Pooling) -> None:
    for name, word, values in (
        ("kernel_size", "kernel size", _pair(settings.kernel_size)),
        ("dilation", "dilation", _pair(settings.dilation)),
        ("padding", "padding", _pair(settings.padding)),
        ("stride", "stride", _pair(settings.stride)),
    ):
        if len(values) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")
        least = 0 if name == "padding" else 1
        if min(values) < least:
            short = {"kernel_size": "kernel", "padding": "pad"}.get(name, name)
            wanted = "non-negative" if least == 0 else "greater than zero"
            raise RuntimeError(
                f"{word} should be {wanted}, but got {short}_height: {values[0]} "
                f"{short}_width: {values[1]}"
            )
