"""Plain functions that move channels of images, or normalise over them."""

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


@overridable
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel of each sample; input (N, C, ...), the others (C).

    Args:
        running_mean, running_var: moved in place with `use_input_stats`; they normalise without.
    """
    if use_input_stats:
        elements = 1
        for size in tuple(input.shape)[2:]:
            elements *= size
        if elements == 1:
            raise ValueError(
                f"Expected more than 1 spatial element when training, got input size {input.shape}"
            )
    return plugrad.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False
    )


@overridable
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """x / (k + alpha * mean of squares of `size` neighbouring channels) ** beta; input (N, C, ...).

    Krizhevsky, Sutskever and Hinton, ImageNet Classification with Deep CNNs, 2012.
    """
    if input.dim() < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)"
        )
    if input.numel() == 0:
        return input
    shape = tuple(input.shape)
    # One image for each sample, with channels as rows; the first window has `size // 2` before it.
    squares = (input * input).reshape(shape[0], 1, shape[1], -1)
    before, behind = size // 2, (size - 1) // 2
    edges = [
        plugrad.zeros(shape[0], 1, count, squares.shape[-1], dtype=input.dtype, device=input.device)
        for count in (before, behind)
    ]
    padded = plugrad.cat([edges[0], squares, edges[1]], 2)
    means = plugrad.avg_pool2d(padded, (size, 1), 1).reshape(shape)
    return input / (means * alpha + k) ** beta
