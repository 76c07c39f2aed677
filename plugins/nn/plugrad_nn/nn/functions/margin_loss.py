"""Losses of pairs, margins, counts and sequences; `functional` shows them beside the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.functions.linear_cross_entropy_options import LinearCrossEntropyOptions
from plugrad_nn.nn.overridable import overridable

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def reduction_named(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction that PyTorch's older pair of flags, where given, stands for."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def _number(size_average: bool | None, reduce: bool | None, reduction: str) -> int:
    """The number by which native operators know it; ValueError if there is none."""
    name = reduction_named(size_average, reduce, reduction)
    if name not in _NUMBERS:
        raise ValueError(f"{name} is not a valid value for reduction")
    return _NUMBERS[name]


def _reduced(losses: Tensor, reduction: str, message: str) -> Tensor:
    if reduction == "none":
        return losses
    if reduction == "mean":
        return losses.mean()
    if reduction == "sum":
        return losses.sum()
    raise ValueError(message)


def _check_margin(margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")


@overridable
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos of the angle where `target` is 1, max(0, cos - margin) where it is -1.

    The inputs are (N, D) with a target (N), or (D) with a target ().
    """
    number = _number(size_average, reduce, reduction)
    return plugrad.cosine_embedding_loss(input1, input2, target, margin, number)


@overridable
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """x where `target` is 1, max(0, margin - x) where it is -1."""
    number = _number(size_average, reduce, reduction)
    return plugrad.hinge_embedding_loss(input, target, margin, number)


@overridable
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin - target * (input1 - input2)); `target` 1 wants the first one larger."""
    number = _number(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return plugrad.margin_ranking_loss(input1, input2, target, margin, number)


@overridable
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), (N, D) or (D), by p-norms.

    With `swap`, the distance of `positive` and `negative` counts where it is smaller.
    """
    number = _number(size_average, reduce, reduction)
    _check_margin(margin)
    return plugrad.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


@overridable
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with another distance; by default the 2-norm of the difference."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    _check_margin(margin)
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
            f"{negative.ndim}D inputs"
        )
    distance = distance_function or _euclidean
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = plugrad.minimum(far, distance(positive, negative))
    return _reduced(plugrad.clamp_min(margin + near - far, 0), reduction, reduction)


def _euclidean(x: Tensor, y: Tensor) -> Tensor:
    return (x - y + 1e-6).norm(2, dim=-1)


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
    """exp(x) - target * x, for counts whose Poisson rate has the logarithm x.

    Without `log_input`, x is the rate itself. `full` adds Stirling's approximation of the rest.
    """
    name = reduction_named(size_average, reduce, reduction)
    if name not in ("none", "mean", "sum"):
        raise ValueError(f"{name} is not a valid value for reduction")
    return plugrad.poisson_nll_loss(input, target, log_input, full, eps, _NUMBERS[name])


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

    `var` has the shape of `input`, or the same with a last dimension of 1 or without it. It counts
    as `eps` at least, and gets its gradient as if it did not. `full` adds log(2 pi) / 2.
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
    return _reduced(losses, reduction, reduction)


def _beside(var: Tensor, input: Tensor) -> Tensor:
    """Variances that are the same for all elements along one dimension."""
    if input.size()[:-1] == var.size():
        return var.unsqueeze(-1)
    sizes = list(zip(input.size(), var.size(), strict=False))
    if input.ndim == var.ndim and sum(given for size, given in sizes if size != given) == 1:
        return var
    raise ValueError("var is of incorrect size")


@overridable
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * input)), with targets 1 and -1."""
    return plugrad.soft_margin_loss(input, target, _number(size_average, reduce, reduction))


@overridable
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over all classes c but the target y of max(0, margin - x[y] + x[c]) ** p.

    `input` is (N, C) or (C), `target` (N) or (); `weight` (C) is that of each target.
    """
    number = _number(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return plugrad.multi_margin_loss(input, target, p, margin, weight, number)


@overridable
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The sum of max(0, 1 - x[y] + x[c]) over labels y and other classes c, divided by C.

    A row of `target` has the labels of a sample before the first -1.
    """
    return plugrad.multilabel_margin_loss(input, target, _number(size_average, reduce, reduction))


@overridable
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the classes, the last dimension, of `binary_cross_entropy_with_logits`."""
    name = reduction_named(size_average, reduce, reduction)
    losses = -(target * plugrad.logsigmoid(input) + (1 - target) * plugrad.logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    last = input.dim() - 1
    return _reduced(losses.sum(dim=last) / input.size(last), name, f"{name} is not valid")


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
        zero_infinity: makes infinite losses, of targets that are too long, zero.
    """
    # Both lengths are tensors, or both sequences: no overload takes one of each.
    first: Any = input_lengths
    second: Any = target_lengths
    number = _number(None, None, reduction)
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
        ignore_index: targets with this value count for nothing; -100 by default.
        options: how PyTorch cuts the batch to save memory; taken, and without effect.
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
