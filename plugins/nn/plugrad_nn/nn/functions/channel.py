"""Plain functions that move channels of images."""

from __future__ import annotations

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.overridable import overridable


@overridable
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Images (*, C, H * r, W * r) from (*, C * r ** 2, H, W), r being `upscale_factor`.

    Args:
        input: (*, C * r ** 2, H, W).
        upscale_factor: how many times larger images become.

    Raises:
        RuntimeError: `input` has less than 3 dimensions, the factor is not positive, or the
            channels
            cannot be divided by its square.

    >>> import plugrad
    >>> image = plugrad.arange(4).reshape(4, 1, 1)
    >>> plugrad.nn.functional.pixel_shuffle(image, 2).tolist()
    [[[0, 1], [2, 3]]]
    """
    return plugrad.pixel_shuffle(input, upscale_factor)


@overridable
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Images (*, C * r ** 2, H, W) from (*, C, H * r, W * r), r being `downscale_factor`.

    Args:
        input: (*, C, H * r, W * r).
        downscale_factor: how many times smaller images become.

    Raises:
        RuntimeError: `input` has less than 3 dimensions, the factor is not positive, or H or W
            cannot
            be divided by it.

    >>> import plugrad
    >>> image = plugrad.arange(4).reshape(1, 2, 2)
    >>> plugrad.nn.functional.pixel_unshuffle(image, 2).tolist()
    [[[0]], [[1]], [[2]], [[3]]]
    """
    return plugrad.pixel_unshuffle(input, downscale_factor)


@overridable
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of `groups` groups, dealt in turns; input (N, C, ...).

    Args:
        input: (N, C, ...).
        groups: how many groups the channels are split into.

    Raises:
        RuntimeError: `groups` is not positive, or does not divide C.

    Source: Zhang et al., ShuffleNet, 2017.

    >>> import plugrad
    >>> x = plugrad.arange(4).reshape(1, 4, 1)
    >>> plugrad.nn.functional.channel_shuffle(x, 2).flatten()
    tensor([0, 2, 1, 3])
    """
    return plugrad.channel_shuffle(input, groups)


@overridable
def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """`channel_shuffle` under the name that PyTorch's kernel has.

    Args:
        input, groups: see `channel_shuffle`.

    >>> import plugrad
    >>> x = plugrad.arange(4).reshape(1, 4, 1)
    >>> plugrad.nn.functional.native_channel_shuffle(x, 2).flatten()
    tensor([0, 2, 1, 3])
    """
    return plugrad.native_channel_shuffle(input, groups)
