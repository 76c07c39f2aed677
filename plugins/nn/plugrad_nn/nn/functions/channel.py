"""Plain functions that move channels of images."""

from __future__ import annotations

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.overridable import overridable


@overridable
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Images (*, C, H * r, W * r) from (*, C * r ** 2, H, W), r being `upscale_factor`."""
    return plugrad.pixel_shuffle(input, upscale_factor)


@overridable
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Images (*, C * r ** 2, H, W) from (*, C, H * r, W * r), r being `downscale_factor`."""
    return plugrad.pixel_unshuffle(input, downscale_factor)


@overridable
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of `groups` groups, dealt in turns; input (N, C, ...)."""
    return plugrad.channel_shuffle(input, groups)


@overridable
def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """`channel_shuffle` under the name that PyTorch's kernel has."""
    return plugrad.native_channel_shuffle(input, groups)
