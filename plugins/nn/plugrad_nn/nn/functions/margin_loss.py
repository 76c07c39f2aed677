"""Losses of pairs, rankings and margins, which `functional` exports."""

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

    Args:
        input1, input2: (N, D), or (D).
        target: (N), or (): 1 or -1.
        margin: the largest cosine that costs nothing where `target` is -1.
        reduction: "mean", "sum" or "none" of the losses.
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: `reduction` is another string.
        RuntimeError: shapes do not fit.

    >>> import plugrad
    >>> x, y = plugrad.tensor([[1.0, 0.0], [1.0, 0.0]]), plugrad.tensor([[0.0, 1.0], [2.0, 0.0]])
    >>> plugrad.nn.functional.cosine_embedding_loss(x, y, plugrad.tensor([1, -1]), reduction="none")
    tensor([1., 1.])
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
    """x where `target` is 1, max(0, margin - x) where it is -1.

    Args:
        input: any shape, distances.
        target: of the same shape, 1 or -1.
        margin: the least distance that costs nothing where `target` is -1.
        reduction: "mean", "sum" or "none" of the losses.
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: `reduction` is another string.

    >>> import plugrad
    >>> x, target = plugrad.tensor([0.5, 0.25, 2.0]), plugrad.tensor([1, -1, -1])
    >>> plugrad.nn.functional.hinge_embedding_loss(x, target, reduction="none")
    tensor([0.5000, 0.7500, 0.0000])
    """
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
    """max(0, margin - target * (input1 - input2)); with `target` 1 the first one should be larger.

    Args:
        input1, input2: any shape.
        target: with as many dimensions, 1 or -1.
        margin: the least difference that costs nothing.
        reduction: "mean", "sum" or "none" of the losses.
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: `reduction` is another string.
        RuntimeError: the numbers of dimensions differ.

    >>> import plugrad
    >>> x, y = plugrad.tensor([3.0, 3.0]), plugrad.tensor([1.0, 1.0])
    >>> plugrad.nn.functional.margin_ranking_loss(x, y, plugrad.tensor([1, -1]), reduction="none")
    tensor([0., 2.])
    """
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

    Args:
        anchor, positive, negative: (N, D) or (D).
        margin: how much further away the negative must be; positive.
        p: of the norm.
        eps: is added to differences.
        swap: whether the distance of `positive` and `negative` counts where it is smaller.
        reduction: "mean", "sum" or "none" of the losses.
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: `margin` is not positive, or `reduction` is another string.
        RuntimeError: the numbers of dimensions differ.

    Source: Balntas et al., Learning Local Feature Descriptors with Triplets, 2016.

    >>> import plugrad
    >>> anchor, near, far = plugrad.tensor([[0.0], [1.0], [9.0]]).unbind()
    >>> plugrad.nn.functional.triplet_margin_loss(anchor, near, far, margin=10.0)
    tensor(2.)
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
    """`triplet_margin_loss` with another distance; by default the 2-norm of the difference.

    Args:
        anchor, positive, negative: with the same number of dimensions.
        distance_function: gives the distances of two of them.
        margin: how much further away the negative must be; positive.
        swap: whether the distance of `positive` and `negative` counts where it is smaller.
        reduction: "mean", "sum" or "none" of the losses.

    Raises:
        ValueError: `margin` is not positive, or `reduction` is another string.
        RuntimeError: the numbers of dimensions differ.

    >>> import plugrad
    >>> anchor, near, far = plugrad.tensor([[0.0], [1.0], [9.0]]).unbind()
    >>> plugrad.nn.functional.triplet_margin_with_distance_loss(
    ...     anchor, near, far, distance_function=lambda x, y: (x - y).abs().sum(-1), margin=10.0
    ... )
    tensor(2.)
    """
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
    """log(1 + exp(-target * input)), with targets 1 and -1.

    Args:
        input: any shape.
        target: of the same shape, 1 or -1.
        reduction: "mean", "sum" or "none" of the losses.
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: `reduction` is another string.

    >>> import plugrad
    >>> x, target = plugrad.tensor([0.0, 1000.0]), plugrad.tensor([1, 1])
    >>> plugrad.nn.functional.soft_margin_loss(x, target, reduction="none")
    tensor([0.6931, 0.0000])
    """
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
    """The sum of max(0, margin - x[y] + x[c]) ** p over all classes c except the target y, divided
    by C.

    Args:
        input: (N, C) or (C).
        target: (N) or (), int64.
        p: 1 or 2.
        margin: by how much the target's value must exceed the others.
        weight: (C), the weight of each target class.
        reduction: "mean", "sum" or "none" of the losses.
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: `p` is another number, `weight` has not one dimension, or `reduction` is another
            string.
        RuntimeError: a target is not a class, or shapes or dtypes do not fit.

    >>> import plugrad
    >>> x, target = plugrad.tensor([[3.0, 1.0], [3.0, 1.0]]), plugrad.tensor([0, 1])
    >>> plugrad.nn.functional.multi_margin_loss(x, target, reduction="none")
    tensor([0.0000, 1.5000])
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

    Args:
        input: (N, C) or (C).
        target: int64 of the same shape; a row has the labels of a sample before the first -1.
        reduction: "mean", "sum" or "none" of the losses.
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: `reduction` is another string.
        RuntimeError: the shapes differ, or `target` is of another dtype.

    >>> import plugrad
    >>> x, target = plugrad.tensor([[3.0, 1.0, 2.5]]), plugrad.tensor([[0, -1, -1]])
    >>> plugrad.nn.functional.multilabel_margin_loss(x, target)
    tensor(0.1667)
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
    """The mean over the classes, the last dimension, of `binary_cross_entropy_with_logits`.

    Args:
        input: (..., C), logits.
        target: of the same shape, 0 or 1.
        weight: (C), multiplies the losses of each class.
        reduction: "mean", "sum" or "none" of the losses.
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: `reduction` is another string.

    >>> import plugrad
    >>> x, target = plugrad.tensor([[0.0, 1000.0]]), plugrad.tensor([[1.0, 1.0]])
    >>> plugrad.nn.functional.multilabel_soft_margin_loss(x, target)
    tensor(0.3466)
    """
    name = reduction_named(size_average, reduce, reduction)
    losses = -(target * plugrad.logsigmoid(input) + (1 - target) * plugrad.logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    last = input.dim() - 1
    return reduced(losses.sum(dim=last) / input.size(last), name, "{} is not valid")
