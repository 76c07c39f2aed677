"""Convolution over signals, images and volumes: Conv1d, Conv2d, Conv3d."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import plugrad
from plugrad import Tensor
from plugrad_nn.nn import functional as F
from plugrad_nn.nn import init
from plugrad_nn.nn.functional import IntOrPair, repeated
from plugrad_nn.nn.looked_up import FunctionOf
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.parameter import Parameter

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Conv(Module):
    """The base of Conv1d, Conv2d and Conv3d, which differ in the number of spatial dimensions.

    Args:
        in_channels, out_channels: C before and after.
        kernel_size, stride, dilation: one integer, or one for each spatial dimension.
        padding: the same, or "valid" (none) or "same" (the spatial sizes stay).
        groups: in and out channels are split into this many independent groups.
        padding_mode: "zeros", "reflect", "replicate" or "circular".

    Weight and bias start uniform on [-k, k] with k = 1 / sqrt(C / groups * product of kernel_size).
    """

    transposed: ClassVar[bool] = False
    _spatial: ClassVar[int]
    _convolve: ClassVar[Callable[..., Tensor]]

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
        count = self._spatial
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = repeated(kernel_size, count)
        self.stride = repeated(stride, count)
        self.padding = padding if isinstance(padding, str) else repeated(padding, count)
        self.dilation = repeated(dilation, count)
        # Only a transposed convolution has an output padding; it adds to the result.
        self.output_padding = repeated(0, count)
        self.groups = groups
        self.padding_mode = padding_mode
        self._check_arguments()
        shape = (*self._channels_of_weight(), *self.kernel_size)
        self.weight = Parameter(plugrad.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(plugrad.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _check_arguments(self) -> None:
        if self.groups <= 0:
            raise ValueError("groups must be a positive integer")
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        if self.out_channels % self.groups:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(self.padding, str):
            if self.padding not in ("valid", "same"):
                raise ValueError(
                    f"Invalid padding string '{self.padding}', should be one of {{'valid', 'same'}}"
                )
            if self.padding == "same" and any(step != 1 for step in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if self.padding_mode not in _PADDING_MODES:
            allowed = ", ".join(repr(mode) for mode in _PADDING_MODES)
            raise ValueError(
                f"padding_mode must be one of {{{allowed}}}, "
                f"but got padding_mode='{self.padding_mode}'"
            )

    def _channels_of_weight(self) -> tuple[int, int]:
        return self.out_channels, self.in_channels // self.groups

    def reset_parameters(self) -> None:
        """Draws the initial weights again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = math.prod(self.weight.shape[1:])
        if self.bias is not None and fan_in > 0:
            bound = 1 / math.sqrt(fan_in)
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        padding: IntOrPair | str = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._pad_widths(), mode=self.padding_mode)
            padding = 0
        return type(self)._convolve(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )

    def _pad_widths(self) -> list[int]:
        """(left, right) of the last dimension, then of the one before it, as `F.pad` takes them."""
        widths: list[int] = []
        for axis in reversed(range(self._spatial)):
            if self.padding == "same":
                total = self.dilation[axis] * (self.kernel_size[axis] - 1)
                widths += [total // 2, total - total // 2]
            elif isinstance(self.padding, str):
                widths += [0, 0]
            else:
                widths += [self.padding[axis]] * 2
        return widths

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}, stride={self.stride}",
        ]
        if self.padding != repeated(0, self._spatial):
            parts.append(f"padding={self.padding}")
        if self.dilation != repeated(1, self._spatial):
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != repeated(0, self._spatial):
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class Conv1d(_Conv):
    """Cross-correlates signals (N, C, L) with `out_channels` learned filters.

    >>> import plugrad
    >>> plugrad.nn.Conv1d(3, 5, 3, padding=1)(plugrad.ones(2, 3, 8)).shape
    plugrad.Size([2, 5, 8])
    """

    _spatial = 1
    _convolve = FunctionOf("conv1d")


class Conv2d(_Conv):
    """Cross-correlates images (N, C, H, W) with `out_channels` learned filters.

    >>> import plugrad
    >>> plugrad.nn.Conv2d(3, 5, 3, padding=1)(plugrad.ones(2, 3, 8, 6)).shape
    plugrad.Size([2, 5, 8, 6])
    """

    _spatial = 2
    _convolve = FunctionOf("conv2d")


class Conv3d(_Conv):
    """Cross-correlates volumes (N, C, D, H, W) with `out_channels` learned filters.

    >>> import plugrad
    >>> plugrad.nn.Conv3d(3, 5, 3, padding=1)(plugrad.ones(2, 3, 8, 6, 4)).shape
    plugrad.Size([2, 5, 8, 6, 4])
    """

    _spatial = 3
    _convolve = FunctionOf("conv3d")
