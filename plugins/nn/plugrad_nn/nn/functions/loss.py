"""Losses of values and classes, which `functional` exports."""

from __future__ import annotations

import warnings

import plugrad
from plugrad import Tensor
from plugrad_nn.nn.functions.reduction import reduced
from plugrad_nn.nn.functions.reduction import reduction_named as _reduction
from plugrad_nn.nn.overridable import overridable


def _warn_of_broadcasting(input: Tensor, target: Tensor) -> None:
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=4,
        )


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
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: `reduction` is another string.
        IndexError: a target is not a class.
        RuntimeError: shapes or dtypes do not fit.

    >>> import plugrad
    >>> logits, target = plugrad.tensor([[0.0, 0.0], [9.0, 0.0]]), plugrad.tensor([1, 1])
    >>> plugrad.nn.functional.cross_entropy(logits, target, reduction="none")
    tensor([0.6931, 9.0001])
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
    """`-input[target]` per sample: input log-probabilities (N, C, ...), target classes (N, ...).

    Args:
        input: log-probabilities (C), (N, C) or (N, C, d1, ...).
        target: classes, int64 of shape (), (N) or (N, d1, ...).
        weight: (C), the weight of each class.
        ignore_index: targets with this value count for nothing.
        reduction: "mean" (by weight), "sum" or "none".
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: `reduction` is another string.
        IndexError: a target is not a class.
        RuntimeError: shapes or dtypes do not fit.

    >>> import plugrad
    >>> log_probs = plugrad.tensor([[0.25, 0.75], [0.5, 0.5]]).log()
    >>> plugrad.nn.functional.nll_loss(log_probs, plugrad.tensor([1, 0]), reduction="none")
    tensor([0.2877, 0.6931])
    """
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
    """Squared differences.

    Args:
        input, target: any shapes that broadcast; a warning says so where they differ.
        reduction: "mean", "sum" or "none" of the losses.
        weight: of the input's shape, multiplies the differences and counts in "mean".
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: `reduction` is another string, or `weight` has another shape.

    >>> import plugrad
    >>> x, target = plugrad.tensor([1.0, 2.0]), plugrad.tensor([1.0, 4.0])
    >>> plugrad.nn.functional.mse_loss(x, target)
    tensor(2.)
    """
    _warn_of_broadcasting(input, target)
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
    """Absolute differences.

    Args:
        input, target: any shapes that broadcast; a warning says so where they differ.
        reduction: "mean", "sum" or "none" of the losses.
        weight: of the input's shape, multiplies the differences and counts in "mean".
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: `reduction` is another string, or `weight` has another shape.
        TypeError: one of the first two is not a tensor.

    >>> import plugrad
    >>> x, target = plugrad.tensor([1.0, 2.0]), plugrad.tensor([1.0, 4.0])
    >>> plugrad.nn.functional.l1_loss(x, target)
    tensor(1.)
    """
    kind = _reduction(size_average, reduce, reduction)
    for position, (name, value) in enumerate((("input", input), ("target", target)), 1):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"l1_loss(): argument '{name}' (position {position}) must be Tensor, not "
                f"{type(value).__name__}"
            )
    _warn_of_broadcasting(input, target)
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
    """d^2 / (2 beta) where the absolute difference d is below `beta`, d - beta / 2 elsewhere.

    Args:
        input, target: any shapes that broadcast; a warning says so where they differ.
        reduction: "mean", "sum" or "none" of the losses.
        beta: not negative; 0 gives `l1_loss`.
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: `reduction` is another string.
        RuntimeError: `beta` is negative.

    Source: Girshick, Fast R-CNN, 2015, equation 3.

    >>> import plugrad
    >>> x, target = plugrad.tensor([0.0, 0.0]), plugrad.tensor([0.5, 2.0])
    >>> plugrad.nn.functional.smooth_l1_loss(x, target, reduction="none")
    tensor([0.1250, 1.5000])
    """
    _warn_of_broadcasting(input, target)
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

    Args:
        input, target: any shapes that broadcast; a warning says so where they differ.
        reduction: "mean", "sum" or "none" of the losses.
        delta: positive, where the parabola becomes a line.
        weight: of the input's shape, multiplies the losses.

    Raises:
        ValueError: `weight` has another shape.
        RuntimeError: `delta` is not positive.

    Source: Huber, Robust Estimation of a Location Parameter, 1964.

    >>> import plugrad
    >>> x, target = plugrad.tensor([0.0, 0.0]), plugrad.tensor([1.0, 4.0])
    >>> plugrad.nn.functional.huber_loss(x, target, reduction="none", delta=2.0)
    tensor([0.5000, 6.0000])
    """
    _warn_of_broadcasting(input, target)
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
    """Binary cross-entropy of probabilities with `target` in [0, 1] of the same shape.

    Args:
        input: any shape, probabilities in [0, 1].
        target: of the same shape.
        weight: of a shape that broadcasts to it, multiplies the losses.
        reduction: "mean", "sum" or "none" of the losses.
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: the shapes differ, or `reduction` is another string.
        RuntimeError: an element of `input` is not in [0, 1].

    >>> import plugrad
    >>> x, target = plugrad.tensor([0.5, 0.25]), plugrad.tensor([0.0, 1.0])
    >>> plugrad.nn.functional.binary_cross_entropy(x, target, reduction="none")
    tensor([0.6931, 1.3863])
    """
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

    Args:
        input: any shape, log-probabilities.
        target: of a shape that broadcasts with it, probabilities.
        reduction: "mean", "sum", "none", or "batchmean", which divides the sum by the first size:
            this
            is the divergence.
        log_target: whether `target` has log-probabilities.
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: `reduction` is another string.

    >>> import plugrad
    >>> x, target = plugrad.tensor([[0.5, 0.5]]).log(), plugrad.tensor([[1.0, 0.0]])
    >>> plugrad.nn.functional.kl_div(x, target, reduction="batchmean")
    tensor(0.6931)
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
    """Binary cross-entropy of sigmoid(input) with `target` in [0, 1] of the same shape.

    Args:
        input: any shape, logits.
        target: of the same shape.
        weight: of a shape that broadcasts to it, multiplies the losses.
        reduction: "mean", "sum" or "none" of the losses.
        pos_weight: of a shape that broadcasts to it, multiplies the part of `target`; above 1, it
            finds more of the positives.
        size_average, reduce: PyTorch's former flags; where one is given, they replace `reduction`.

    Raises:
        ValueError: the shapes differ, or `reduction` is another string.

    >>> import plugrad
    >>> x, target = plugrad.tensor([0.0, 1000.0]), plugrad.tensor([1.0, 1.0])
    >>> plugrad.nn.functional.binary_cross_entropy_with_logits(x, target, reduction="none")
    tensor([0.6931, 0.0000])
    """
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
