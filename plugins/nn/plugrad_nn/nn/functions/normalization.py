"""Normalisations as plain functions, which `functional` exports."""

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
        running_mean, running_var: (C), updated in place when training; None to keep no statistics.
        weight, bias: (C), the factor and the summand of the result.
        training: whether mean and variance come from the batch.
        momentum: the share of the batch's statistics in the running ones.
        eps: is added to the variance, positive in training and not negative otherwise.

    Raises:
        ValueError: there is one value per channel, in training, or `eps` is out of its range.
        RuntimeError: a tensor has another number of elements than there are channels.

    Source: Ioffe and Szegedy, Batch Normalization, 2015.

    >>> import plugrad
    >>> x = plugrad.tensor([[1.0, 10.0], [3.0, 30.0]])
    >>> plugrad.nn.functional.batch_norm(x, None, None, training=True)
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
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
    _check_eps(training, eps)
    return plugrad.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )


def _check_eps(training: bool, eps: float) -> None:
    if not isinstance(eps, (int, float)):
        return  # The operator names an argument of another type.
    if training and eps <= 0.0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")


@overridable
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises over the last dimensions, which have `normalized_shape`.

    Args:
        input: (*, *normalized_shape).
        normalized_shape: the sizes of the dimensions over which mean and variance are taken.
        weight, bias: of that shape, the factor and the summand of the result.
        eps: is added to the variance.

    Raises:
        RuntimeError: shapes do not fit.

    Source: Ba, Kiros and Hinton, Layer Normalization, 2016.

    >>> import plugrad
    >>> x = plugrad.tensor([[1.0, 3.0], [10.0, 30.0]])
    >>> plugrad.nn.functional.layer_norm(x, (2,))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    return plugrad.layer_norm(input, tuple(normalized_shape), weight, bias, eps)


@overridable
def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divides the last dimensions, which have `normalized_shape`, by their root mean square.

    Args:
        input: (*, *normalized_shape).
        normalized_shape: the sizes of the dimensions over which the mean is taken.
        weight: of that shape, the factor of the result.
        eps: is added to the mean square; the machine precision by default.

    Raises:
        RuntimeError: shapes do not fit.

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.

    >>> import plugrad
    >>> x = plugrad.tensor([1.0, 7.0])
    >>> plugrad.nn.functional.rms_norm(x, (2,))
    tensor([0.2000, 1.4000])
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
    """Normalises each sample's groups of channels; input (N, C, ...), weight and bias (C).

    Args:
        input: (N, C, ...).
        num_groups: how many groups of neighbouring channels; it divides C.
        weight, bias: (C), the factor and the summand of the result.
        eps: is added to the variance.

    Raises:
        RuntimeError: `num_groups` does not divide C, or shapes do not fit.

    Source: Wu and He, Group Normalization, 2018.

    >>> import plugrad
    >>> x = plugrad.tensor([[1.0, 3.0, 10.0, 30.0]])
    >>> plugrad.nn.functional.group_norm(x, num_groups=2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
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
    """Normalises each channel of each sample.

    Args:
        input: (N, C, ...).
        running_mean, running_var: (C), moved in place with `use_input_stats`; they normalise
            without.
        weight, bias: (C), the factor and the summand of the result.
        use_input_stats: whether mean and variance come from each channel of each sample.
        momentum: the share of the new statistics in the running ones.
        eps: is added to the variance.

    Raises:
        ValueError: there is one element per channel, with `use_input_stats`.

    Source: Ulyanov, Vedaldi and Lempitsky, Instance Normalization, 2016.

    >>> import plugrad
    >>> x = plugrad.tensor([[[1.0, 3.0], [10.0, 30.0]]])
    >>> plugrad.nn.functional.instance_norm(x)
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
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

    Args:
        input: (N, C, ...), with 3 dimensions at least.
        size: how many channels are averaged; missing ones count as 0.
        alpha, beta, k: see the formula.

    Raises:
        ValueError: `input` has less than 3 dimensions.

    Source: Krizhevsky, Sutskever and Hinton, ImageNet Classification with Deep CNNs, 2012.

    >>> import plugrad
    >>> x = plugrad.ones(1, 3, 1)
    >>> plugrad.nn.functional.local_response_norm(x, size=3, alpha=3.0, beta=1.0).flatten()
    tensor([0.3333, 0.2500, 0.3333])
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
