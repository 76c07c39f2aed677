"""Transposed convolution: ConvTranspose1d, ConvTranspose2d, ConvTranspose3d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.conv import _Conv
from plugrad_nn.nn.functional import IntOrPair, repeated
from plugrad_nn.nn.looked_up import FunctionOf


class _ConvTranspose(_Conv):
    """The base of transposed convolutions: the gradients of convolutions with respect to their
    inputs.

    Args:
        in_channels, out_channels: C before and after.
        kernel_size, stride, padding, dilation: the convolution's.
        output_padding: the size added at one end of the result, less than the stride. It is needed
            because a convolution with a stride maps several sizes to the same.
        groups: in and out channels are split into this many independent groups.
        padding_mode: "zeros".

    The weight is (in_channels, out_channels / groups, *kernel_size). It and the bias start uniform
    on [-k, k] with k = 1 / sqrt(out_channels / groups * product of kernel_size).
    """

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: IntOrPair,
        stride: IntOrPair = 1,
        padding: IntOrPair = 0,
        output_padding: IntOrPair = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: IntOrPair = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: plugrad.dtype | None = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
        self.output_padding = repeated(output_padding, self._spatial)

    def _channels_of_weight(self) -> tuple[int, int]:
        return self.in_channels, self.out_channels // self.groups

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The result; `output_size`, with or without N and C, takes the place of `output_padding`.

        ValueError if no convolution with these arguments makes the input's sizes of these.
        """
        extra = self.output_padding
        if output_size is not None:
            extra = self._extra_for(input, list(output_size))
        return type(self)._convolve(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            extra,
            self.groups,
            self.dilation,
        )

    def _extra_for(self, input: Tensor, wanted: list[int]) -> tuple[int, ...]:
        spatial = self._spatial
        others = 2 if input.dim() == spatial + 2 else 1
        if len(wanted) == others + spatial:
            wanted = wanted[others:]
        if len(wanted) != spatial:
            raise ValueError(
                f"ConvTranspose{spatial}D: for {input.dim()}D input, output_size must have "
                f"{spatial} or {others + spatial} elements (got {len(wanted)})"
            )
        padding = self.padding
        assert not isinstance(padding, str)
        least = [
            (input.shape[others + axis] - 1) * self.stride[axis]
            - 2 * padding[axis]
            + self.dilation[axis] * (self.kernel_size[axis] - 1)
            + 1
            for axis in range(spatial)
        ]
        most = [low + step - 1 for low, step in zip(least, self.stride, strict=True)]
        if any(not low <= n <= high for low, n, high in zip(least, wanted, most, strict=True)):
            raise ValueError(
                f"requested an output size of {wanted}, but valid sizes range from {least} to "
                f"{most} (for an input of {input.shape[2:]})"
            )
        return tuple(n - low for n, low in zip(wanted, least, strict=True))


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution of signals (N, C, L) with learned filters.

    >>> import plugrad
    >>> plugrad.nn.ConvTranspose1d(3, 4, 5, stride=2)(plugrad.ones(1, 3, 10)).shape
    plugrad.Size([1, 4, 23])
    """

    _spatial = 1
    _convolve = FunctionOf("conv_transpose1d")


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution of images (N, C, H, W) with learned filters.

    >>> import plugrad
    >>> plugrad.nn.ConvTranspose2d(3, 5, 2, stride=2)(plugrad.ones(2, 3, 8, 6)).shape
    plugrad.Size([2, 5, 16, 12])
    """

    _spatial = 2
    _convolve = FunctionOf("conv_transpose2d")


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution of volumes (N, C, D, H, W) with learned filters.

    >>> import plugrad
    >>> plugrad.nn.ConvTranspose3d(3, 5, 2, stride=2)(plugrad.ones(2, 3, 8, 6, 4)).shape
    plugrad.Size([2, 5, 16, 12, 8])
    """

    _spatial = 3
    _convolve = FunctionOf("conv_transpose3d")
