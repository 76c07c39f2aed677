"""Normalisations as plain functions; `functional` shows them beside the layers."""

from __future__ import annotations

from collections.abc import Sequence

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.overridable import overridable


@overridable
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel over the batch (training) or by the running statistics.

    Args:
        input: (N, C, ...).
        running_mean, running_var: (C), updated in place when training.
    """
    if training:
        shape = tuple(input.shape)
        values_per_channel = shape[0]
        for size in shape[2:]:
            values_per_channel *= size
        if values_per_channel == 1:
            raise ValueError(
                "Expected more than 1 value per channel when training, "
                f"got input size {input.shape}"
            )
    return plugrad.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


@overridable
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises over the last dimensions, which have `normalized_shape`."""
    return plugrad.layer_norm(input, tuple(normalized_shape), weight, bias, eps)


@overridable
def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divides the last dimensions, which have `normalized_shape`, by their root mean square.

    `eps`, by default the machine precision, is added to the mean square.
    """
    return plugrad.rms_norm(input, tuple(normalized_shape), weight, eps)


@overridable
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each sample's groups of channels; input (N, C, ...), weight and bias (C)."""
    return plugrad.group_norm(input, num_groups, weight, bias, eps)


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
