"""Converts the weights of convolutions to a memory format."""

from __future__ import annotations

from typing import Any, TypeVar

from plugrad.plugins.arguments import explains
from plugrad_nn.nn.conv import Conv2d, Conv3d
from plugrad_nn.nn.module import Module
from plugrad_nn.nn.modules.conv_transpose import ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

M = TypeVar("M", bound=Module)


@explains
def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Lays out the weights of all `Conv2d` and `ConvTranspose2d` below `module` in a memory format.

    Values and parameter objects stay the same. Returns the module.

    Args:
        module: a convolution, or a module with convolutions.
        memory_format: such as `plugrad.channels_last`.

    >>> import plugrad
    >>> layer = plugrad.nn.Conv2d(2, 3, 3)
    >>> from plugrad.nn.utils import convert_conv2d_weight_memory_format
    >>> _ = convert_conv2d_weight_memory_format(layer, plugrad.channels_last)
    >>> layer.weight.is_contiguous(memory_format=plugrad.channels_last)
    True
    """
    return _converted(module, memory_format, (Conv2d, ConvTranspose2d))


@explains
def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """As `convert_conv2d_weight_memory_format`, of `Conv3d` and `ConvTranspose3d`.

    Args:
        module: a convolution, or a module with convolutions.
        memory_format: such as `plugrad.channels_last_3d`.

    >>> import plugrad
    >>> layer = plugrad.nn.Conv3d(2, 3, 3)
    >>> from plugrad.nn.utils import convert_conv3d_weight_memory_format
    >>> _ = convert_conv3d_weight_memory_format(layer, plugrad.channels_last_3d)
    >>> layer.weight.is_contiguous(memory_format=plugrad.channels_last_3d)
    True
    """
    return _converted(module, memory_format, (Conv3d, ConvTranspose3d))


def _converted(module: M, memory_format: Any, kinds: tuple[type, ...]) -> M:
    convolutions: list[Any] = [each for each in module.modules() if isinstance(each, kinds)]
    for each in convolutions:
        each.weight.data = each.weight.detach().clone(memory_format=memory_format)
    return module
