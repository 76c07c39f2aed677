"""Batch normalisation over the batches of all ranks, built from differentiable operators."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.distributed import functional
from plugrad_distributed.groups.process_group import ProcessGroup

__all__ = ["sync_batch_norm"]


def sync_batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: float,
    eps: float,
    group: ProcessGroup,
) -> Tensor:
    """Normalise each channel by the mean and variance of all ranks' inputs.

    Each rank sends its mean, its sum of squared deviations and its count once. Batches may differ
    in size or be empty. Gradients are derivatives of the sum of all ranks' losses.

    Args:
        input: (N, C, ...); N may differ between ranks.
        running_mean, running_var: (C,), updated, or None.
        weight, bias: (C,) or None.
        momentum: the weight of this batch in the running statistics.

    Raises:
        ValueError: all ranks together have only one value per channel, or none.

    Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing
    sample variances", 1979.
    """
    half = input.element_size() < 4
    wide = input.to(plugrad.float32) if half else input
    dims = [0, *range(2, input.ndim)]
    shape = [1, -1, *[1] * (input.ndim - 2)]
    count = input.numel() // input.shape[1]
    mean = wide.sum(dims) / max(count, 1)
    squares = ((wide - mean.view(shape)) ** 2).sum(dims)
    own = plugrad.stack([mean, squares, plugrad.full_like(mean, float(count))])
    means, sums, counts = functional.all_gather(own.unsqueeze(0), 0, group).unbind(1)
    counts = counts.detach()
    total = int(counts[:, 0].sum())
    if total <= 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {total}"
        )
    mean = (counts * means).sum(0) / total
    squares = (sums + counts * (means - mean) ** 2).sum(0)
    _update(running_mean, mean, momentum)
    _update(running_var, squares / (total - 1), momentum)
    scale = (squares / total + eps).rsqrt()
    result = (wide - mean.view(shape)) * scale.view(shape)
    if weight is not None:
        result = result * weight.view(shape)
    if bias is not None:
        result = result + bias.view(shape)
    return result.to(input.dtype) if half else result


def _update(running: Any, found: Tensor, momentum: float) -> None:
    if running is not None:
        with plugrad.no_grad():
            running.lerp_(found.detach().to(running.dtype), momentum)
