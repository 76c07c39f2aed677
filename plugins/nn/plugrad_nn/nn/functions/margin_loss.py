"""Losses of pairs, rankings and margins; `functional` shows them beside the others."""

from __future__ import annotations

from collections.abc import Callable

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.functions.reduction import reduced, reduction_named, reduction_number
from plugrad_nn.nn.overridable import overridable


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
    number = reduction_number(size_average, reduce, reduction)
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
    number = reduction_number(size_average, reduce, reduction)
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
    number = reduction_number(size_average, reduce, reduction)
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
    number = reduction_number(size_average, reduce, reduction)
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
    return reduced(plugrad.clamp_min(margin + near - far, 0), reduction, "{}")


def _euclidean(x: Tensor, y: Tensor) -> Tensor:
    return (x - y + 1e-6).norm(2, dim=-1)


@overridable
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + exp(-target * input)), with targets 1 and -1."""
    return plugrad.soft_margin_loss(
        input, target, reduction_number(size_average, reduce, reduction)
    )


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
    number = reduction_number(size_average, reduce, reduction)
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
    return plugrad.multilabel_margin_loss(
        input, target, reduction_number(size_average, reduce, reduction)
    )


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
    return reduced(losses.sum(dim=last) / input.size(last), name, "{} is not valid")
