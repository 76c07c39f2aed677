"""Losses of values and classes; `functional` shows them beside the others."""

from __future__ import annotations

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.functions.reduction import reduced
from plugrad_nn.nn.functions.reduction import reduction_named as _reduction
from plugrad_nn.nn.overridable import overridable


@overridable
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Negative log-likelihood of `target` under softmax(input).

    Args:
        input: logits (C), (N, C) or (N, C, d1, ...).
        target: class indices of shape (), (N) or (N, d1, ...), or probabilities shaped like input.
        weight: (C), the weight of each class.
        ignore_index: targets with this value count for nothing.
        reduction: "mean" (by weight), "sum" or "none".
        label_smoothing: in [0, 1], the share of the target spread over all classes.
    """
    return plugrad.cross_entropy_loss(
        input,
        target,
        weight=weight,
        reduction=_reduction(size_average, reduce, reduction),
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )


@overridable
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`-input[target]` per sample: input log-probabilities (N, C, ...), target classes (N, ...)."""
    return plugrad.nll_loss(
        input,
        target,
        weight=weight,
        reduction=_reduction(size_average, reduce, reduction),
        ignore_index=ignore_index,
    )


@overridable
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Squared differences; `weight`, of the input's shape, multiplies them and counts in "mean"."""
    kind = _reduction(size_average, reduce, reduction)
    if weight is None:
        return plugrad.mse_loss(input, target, reduction=kind)
    return _weighted((input - target) ** 2, input, weight, kind)


@overridable
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Absolute differences; `weight`, of the input's shape, multiplies them, counts in "mean"."""
    kind = _reduction(size_average, reduce, reduction)
    for position, (name, value) in enumerate((("input", input), ("target", target)), 1):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"l1_loss(): argument '{name}' (position {position}) must be Tensor, not "
                f"{type(value).__name__}"
            )
    losses = (input - target).abs()
    return reduced(losses, kind) if weight is None else _weighted(losses, input, weight, kind)


@overridable
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d^2 / (2 beta) where the absolute difference d is below `beta`, d - beta / 2 elsewhere."""
    return plugrad.smooth_l1_loss(input, target, _reduction(size_average, reduce, reduction), beta)


@overridable
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """d^2 / 2 where the absolute difference d is below `delta`, delta * (d - delta / 2) elsewhere.

    `weight`, of the input's shape, multiplies the losses.
    """
    if weight is None:
        return plugrad.huber_loss(input, target, reduction, delta)
    if tuple(weight.shape) != tuple(input.shape):
        raise ValueError("Weights and input must have the same size.")
    return reduced(plugrad.huber_loss(input, target, "none", delta) * weight, reduction)


@overridable
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary cross-entropy of probabilities with `target` in [0, 1] of the same shape."""
    if tuple(target.shape) != tuple(input.shape):
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is deprecated. Please ensure they have the same size."
        )
    kind = _reduction(size_average, reduce, reduction)
    return plugrad.binary_cross_entropy(input, target, weight, kind)


@overridable
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """target * (log(target) - input), where input is a log-probability, as is target on request.

    The reduction "batchmean" divides the sum by the first size, which is the divergence.
    """
    if reduction == "batchmean":
        total = plugrad.kl_div(input, target, "sum", log_target=log_target)
        return total / input.shape[0] if input.ndim else total
    kind = _reduction(size_average, reduce, reduction)
    return plugrad.kl_div(input, target, kind, log_target=log_target)


@overridable
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Binary cross-entropy of sigmoid(input) with `target` in [0, 1] of the same shape."""
    if tuple(target.shape) != tuple(input.shape):
        raise ValueError(
            f"Target size ({target.shape}) must be the same as input size ({input.shape})"
        )
    return plugrad.binary_cross_entropy_with_logits(
        input,
        target,
        weight=weight,
        pos_weight=pos_weight,
        reduction=_reduction(size_average, reduce, reduction),
    )


def _weighted(losses: Tensor, input: Tensor, weight: Tensor, reduction: str) -> Tensor:
    if tuple(weight.shape) != tuple(input.shape):
        raise ValueError("Weights and input must have the same size.")
    if reduction == "mean":
        return (losses * weight).sum() / weight.sum()
    return reduced(losses * weight, reduction)
