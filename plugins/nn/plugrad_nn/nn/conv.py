"""Convolution and pooling over images: Conv2d, MaxPool2d, AvgPool2d, Flatten."""

from __future__ import annotations

import math
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.nn import functional as F
from plugrad_nn.nn import init
from plugrad_nn.nn.functional import IntOrPair, _pair
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.parameter import Parameter

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class Conv2d(Module):
    """Cross-correlates images (N, C, H, W) with `out_channels` learned filters.

    Args:
        in_channels, out_channels: C before and after.
        kernel_size, stride, dilation: one integer or (height, width).
        padding: the same, or "valid" (none) or "same" (H and W stay).
        groups: in and out channels are split into this many independent groups.
        padding_mode: "zeros", "reflect", "replicate" or "circular".

    Weight and bias start uniform on [-k, k] with k = 1 / sqrt(C / groups * kH * kW).
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: IntOrPair,
        stride: IntOrPair = 1,
        padding: IntOrPair | str = 0,
        dilation: IntOrPair = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        super().__init__()
        _check_arguments(in_channels, out_channels, stride, padding, groups, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _pair(kernel_size)
        self.stride = _pair(stride)
        self.padding = padding if isinstance(padding, str) else _pair(padding)
        self.dilation = _pair(dilation)
        self.groups = groups
        self.padding_mode = padding_mode
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(plugrad.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(plugrad.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial weights again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = self.in_channels // self.groups * math.prod(self.kernel_size)
        if self.bias is not None and fan_in > 0:
            bound = 1 / math.sqrt(fan_in)
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        padding: IntOrPair | str = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._pad_widths(), mode=self.padding_mode)
            padding = 0
        return F.conv2d(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )

    def _pad_widths(self) -> tuple[int, int, int, int]:
        """(left, right, top, bottom), as `F.pad` takes them."""
        widths: list[int] = []
        for axis in (1, 0):
            if self.padding == "same":
                total = self.dilation[axis] * (self.kernel_size[axis] - 1)
                widths += [total // 2, total - total // 2]
            elif isinstance(self.padding, str):
                widths += [0, 0]
            else:
                widths += [self.padding[axis]] * 2
        left, right, top, bottom = widths
        return left, right, top, bottom

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}, stride={self.stride}",
        ]
        if self.padding != (0, 0):
            parts.append(f"padding={self.padding}")
        if self.dilation != (1, 1):
            parts.append(f"dilation={self.dilation}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


def _check_arguments(
    in_channels: int,
    out_channels: int,
    stride: IntOrPair,
    padding: IntOrPair | str,
    groups: int,
    padding_mode: str,
) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups:
        raise ValueError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("valid", "same"):
            raise ValueError(
                f"Invalid padding string '{padding}', should be one of {{'valid', 'same'}}"
            )
        if padding == "same" and _pair(stride) != (1, 1):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in _PADDING_MODES:
        allowed = ", ".join(repr(mode) for mode in _PADDING_MODES)
        raise ValueError(
            f"padding_mode must be one of {{{allowed}}}, but got padding_mode='{padding_mode}'"
        )


class MaxPool2d(Module):
    """The largest value of each window of an image (N, C, H, W), and on request where it was."""

    def __init__(
        self,
        kernel_size: IntOrPair,
        stride: IntOrPair | None = None,
        padding: IntOrPair = 0,
        dilation: IntOrPair = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return F.max_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class AvgPool2d(Module):
    """The mean of each window of an image (N, C, H, W)."""

    def __init__(
        self,
        kernel_size: IntOrPair,
        stride: IntOrPair | None = None,
        padding: IntOrPair = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class Flatten(Module):
    """Joins the dimensions from `start_dim` to `end_dim` into one; by default all but the batch."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
