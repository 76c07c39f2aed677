"""Losses of counts, normal variables, sequences of labels and classes: minus log-likelihoods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.functions.linear_cross_entropy_options import LinearCrossEntropyOptions
from plugrad_nn.nn.functions.reduction import (
    NUMBERS,
    reduced,
    reduction_named,
    reduction_number,
)
from plugrad_nn.nn.overridable import overridable


@overridable
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """exp(x) - target * x, for counts with the logarithm x of the Poisson rate.

    Args:
        input: any shape.
        target: counts, of a shape that broadcasts with it.
        log_input: without it, `input` is the rate itself: the loss is x - target * log(x + eps).
        full: whether to add Stirling's approximation of log(target!).
        eps: see `log_input`.
        reduction: "mean", "sum" or "none" of the losses.
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: `reduction` is another string.

    >>> import plugrad
    >>> x, target = plugrad.tensor([0.0, 0.0]), plugrad.tensor([0.0, 3.0])
    >>> plugrad.nn.functional.poisson_nll_loss(x, target, reduction="none")
    tensor([1., 1.])
    """
    name = reduction_named(size_average, reduce, reduction)
    if name not in ("none", "mean", "sum"):
        raise ValueError(f"{name} is not a valid value for reduction")
    return plugrad.poisson_nll_loss(input, target, log_input, full, eps, NUMBERS[name])


@overridable
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """(log(var) + (input - target)^2 / var) / 2, for normal variables with these variances.

    Args:
        input: any shape, the means.
        target: of a shape that broadcasts with it.
        var: a number, or of the shape of `input`, or the same with a last dimension of 1 or without
            it.
            It counts as `eps` at least, and gets its gradient as if it did not.
        full: whether to add log(2 pi) / 2.
        eps: the least variance.
        reduction: "mean", "sum" or "none" of the losses.

    Raises:
        ValueError: `var` is negative or has another shape, or `reduction` is another string.

    Source: Nix and Weigend, Estimating the Mean and Variance of the Target Distribution, 1994.

    >>> import plugrad
    >>> x, target = plugrad.tensor([0.0, 1.0]), plugrad.tensor([0.0, 3.0])
    >>> plugrad.nn.functional.gaussian_nll_loss(x, target, plugrad.ones(2), reduction="none")
    tensor([0., 2.])
    """
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * plugrad.ones_like(input)
    elif bool(plugrad.any(var < 0)):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        var = _beside(var, input)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    var = var.clone()
    with plugrad.no_grad():
        var.clamp_(min=eps)
    losses = 0.5 * (plugrad.log(var) + (input - target) ** 2 / var)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return reduced(losses, reduction, "{}")


def _beside(var: Tensor, input: Tensor) -> Tensor:
    """Variances that are the same for all elements along one dimension."""
    if input.size()[:-1] == var.size():
        return var.unsqueeze(-1)
    sizes = list(zip(input.size(), var.size(), strict=False))
    if input.ndim == var.ndim and sum(given for size, given in sizes if size != given) == 1:
        return var
    raise ValueError("var is of incorrect size")


@overridable
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log-likelihood of label sequences over all alignments (Graves et al. 2006).

    Args:
        log_probs: (T, N, C) or (T, C), as `log_softmax` gives it.
        targets: (N, S), or the labels of all sequences one after the other.
        input_lengths: (N), at most T.
        target_lengths: (N), at most S; "mean" divides each loss by it first.
        blank: the class that means no label.
        reduction: "mean", "sum" or "none" of the losses.
        zero_infinity: makes infinite losses, of targets that are too long, zero.

    Raises:
        ValueError: `reduction` is another string.
        RuntimeError: lengths or labels do not fit.

    >>> import plugrad
    >>> log_probs = plugrad.tensor([[0.5, 0.5], [0.5, 0.5]]).log()
    >>> loss = plugrad.nn.functional.ctc_loss(log_probs, plugrad.tensor([1]), [2], [1])
    >>> (-loss).exp()
    tensor(0.7500)
    """
    # Both lengths are tensors, or both sequences: no overload takes one of each.
    first: Any = input_lengths
    second: Any = target_lengths
    number = reduction_number(None, None, reduction)
    losses: Tensor = plugrad.ctc_loss(
        log_probs, targets, first, second, blank, number, zero_infinity
    )
    return losses


@overridable
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """`cross_entropy` of `linear(input, linear_weight, linear_bias)`.

    Args:
        input: (N, I) or (I).
        linear_weight: (C, I); (C, d1, ..., I) for as many predictions for each sample.
        target: class indices (N, d1, ...), or probabilities (N, C, d1, ...).
        linear_bias: (C, d1, ...).
        weight: (C), the weight of each class.
        reduction: "mean" (by weight), "sum" or "none".
        ignore_index: targets with this value count for nothing; -100 by default.
        label_smoothing: in [0, 1], the share of the target spread over all classes.
        options: how PyTorch cuts the batch to save memory; taken, and without effect.

    Raises:
        RuntimeError: shapes do not fit, or `ignore_index` is combined with probabilities.
        TypeError: `options` are not `LinearCrossEntropyOptions`.

    >>> import plugrad
    >>> x, weight = plugrad.tensor([[2.0, 2.0]]), plugrad.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> loss = plugrad.nn.functional.linear_cross_entropy(x, weight, plugrad.tensor([0]))
    >>> (-loss).exp()
    tensor(0.5000)
    """
    if options is not None and not isinstance(options, LinearCrossEntropyOptions):
        raise TypeError(
            "linear_cross_entropy(): argument 'options' must be LinearCrossEntropyOptions or None, "
            f"not {type(options).__name__}"
        )
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}"
        )
    features = input.shape[-1]
    if features != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {features} and {linear_weight.shape[-1]}, respectively"
        )
    outputs = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != outputs:
        raise RuntimeError(f"expected linear_bias shape {outputs}, got {tuple(linear_bias.shape)}")
    if len(outputs) > 1 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} "
            f"requires batched input, (N, {features}), got unbatched input with shape "
            f"{tuple(input.shape)}"
        )
    shape = (*input.shape[:-1], *outputs)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = plugrad.linear(input, linear_weight.reshape(-1, features), bias)
    return plugrad.cross_entropy_loss(
        logits.reshape(shape),
        target,
        weight=weight,
        reduction=reduction,
        ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
    )
