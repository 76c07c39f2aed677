"""Losses of margins, embeddings, counts and sequences; each holds the options of its function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.nn import functional as F
from plugrad_nn.nn.functions.linear_cross_entropy_options import LinearCrossEntropyOptions
from plugrad_nn.nn.linear import Linear
from plugrad_nn.nn.loss import _Loss, _WeightedLoss
from plugrad_nn.nn.modules.pairs import PairwiseDistance


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of counts under Poisson distributions.

    Args:
        log_input: the input is the logarithm of the rate.
        full: add Stirling's approximation of log(target!).
        eps: added to the rate before its logarithm is taken.

    >>> import plugrad
    >>> plugrad.nn.PoissonNLLLoss()(plugrad.tensor([1.0, 2.0]), plugrad.tensor([0.0, 4.0]))
    tensor(1.0537)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """Negative log-likelihood of targets under normal distributions; `full` adds log(2 pi) / 2.

    >>> import plugrad
    >>> layer = plugrad.nn.GaussianNLLLoss()
    >>> layer(plugrad.tensor([1.0, 2.0]), plugrad.tensor([0.0, 4.0]), plugrad.ones(2))
    tensor(1.2500)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """`input` are the means; `var` the variances, at least `eps`."""
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )


class _MarginLoss(_Loss):
    """A loss with a margin as its first option."""

    def __init__(
        self,
        margin: float,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class HingeEmbeddingLoss(_MarginLoss):
    """x where the target is 1, max(0, margin - x) where it is -1.

    >>> import plugrad
    >>> plugrad.nn.HingeEmbeddingLoss()(plugrad.tensor([0.5, 2.0]), plugrad.tensor([-1.0, 1.0]))
    tensor(1.2500)
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1.

    >>> import plugrad
    >>> x = plugrad.tensor([[1.0, 0.0], [1.0, 1.0]])
    >>> plugrad.nn.CosineEmbeddingLoss()(x, x.flip(1), plugrad.tensor([1.0, -1.0]))
    tensor(1.)
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(
            input1, input2, target, self.margin, reduction=self.reduction
        )


class MarginRankingLoss(_MarginLoss):
    """max(0, margin - y * (x1 - x2)): x1 should be greater where y is 1, and x2 where y is -1.

    >>> import plugrad
    >>> layer = plugrad.nn.MarginRankingLoss(0.5)
    >>> layer(plugrad.tensor([1.0, 2.0]), plugrad.tensor([0.0, 4.0]), plugrad.tensor([1.0, -1.0]))
    tensor(0.)
    """

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """The hinge loss of several classes of each sample; input and target (N, C) or (C).

    >>> import plugrad
    >>> layer = plugrad.nn.MultiLabelMarginLoss()
    >>> layer(plugrad.tensor([0.5, 1.0, 0.0]), plugrad.tensor([1, -1, 0]))
    tensor(0.1667)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-y * x)) for targets y of 1 and -1.

    >>> import plugrad
    >>> plugrad.nn.SoftMarginLoss()(plugrad.tensor([0.0, 2.0]), plugrad.tensor([-1.0, 1.0]))
    tensor(0.4100)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over classes of the binary cross-entropy with logits; input, target (N, C).

    >>> import plugrad
    >>> layer = plugrad.nn.MultiLabelSoftMarginLoss()
    >>> layer(plugrad.zeros(1, 3), plugrad.tensor([[0.0, 1.0, 1.0]]))
    tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """The mean over classes of max(0, margin - x[y] + x[c]) ** p; input (N, C), target (N).

    >>> import plugrad
    >>> plugrad.nn.MultiMarginLoss()(plugrad.tensor([[0.5, 1.0, 0.0]]), plugrad.tensor([1]))
    tensor(0.1667)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                "MultiMarginLoss: expected weight to be None or 1D tensor, got "
                f"{weight.dim()}D instead"
            )
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, self.p, self.margin, self.weight, reduction=self.reduction
        )


def _check_margin(name: str, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"{name}: expected margin to be greater than 0, got {margin} instead")


class TripletMarginLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-norm of the difference.

    `swap` takes the distance between positive and negative where it is the smaller one.

    >>> import plugrad
    >>> anchor, near, far = plugrad.zeros(1, 2), plugrad.ones(1, 2), 2 * plugrad.ones(1, 2)
    >>> plugrad.nn.TripletMarginLoss(2.0)(anchor, near, far)
    tensor(0.5858)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        _check_margin("TripletMarginLoss", margin)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            self.margin,
            self.p,
            self.eps,
            self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with any distance, by default `PairwiseDistance()`.

    >>> import plugrad
    >>> anchor, near, far = plugrad.zeros(1, 2), plugrad.ones(1, 2), 2 * plugrad.ones(1, 2)
    >>> plugrad.nn.TripletMarginWithDistanceLoss(margin=2.0)(anchor, near, far)
    tensor(0.5858)
    """

    distance_function: Any

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        _check_margin("TripletMarginWithDistanceLoss", margin)
        self.distance_function = PairwiseDistance()
        if distance_function is not None:
            self.distance_function = distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    """Negative log-likelihood of target sequences, however aligned (Graves et al. 2006).

    Args:
        blank: the class that means no label.
        zero_infinity: zero for infinite losses, of targets too long for their input.

    >>> import plugrad
    >>> log_probs = plugrad.zeros(4, 1, 3).log_softmax(2)
    >>> plugrad.nn.CTCLoss()(log_probs, plugrad.tensor([[1, 2]]), (4,), (2,))
    tensor(0.8432)
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        """`log_probs` (T, N, C) or (T, C), `targets` (N, S) or (sum of target_lengths)."""
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """`CrossEntropyLoss` of a linear layer, which it owns; see `F.linear_cross_entropy`.

    Args:
        in_features: the width of the input (N, in_features).
        num_classes: C.
        out_features: as many predictions for each sample.
        options: how PyTorch cuts the batch to save memory; taken, and without effect.

    >>> import plugrad
    >>> plugrad.nn.LinearCrossEntropyLoss(4, 3)(plugrad.ones(2, 4), plugrad.tensor([0, 2])).shape
    plugrad.Size([])
    """

    linear: Linear

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: plugrad.dtype | None = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(
                f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                f"expected label_smoothing to be in range [0, 1], got {label_smoothing}"
            )
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        outputs = math.prod(out_features, start=num_classes)
        self.linear = Linear(in_features, outputs, bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        outputs = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*outputs, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(outputs),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
