"""Losses as modules: each holds the options of the function of the same name in `functional`."""

from __future__ import annotations

from plugrad import Tensor
from plugrad_nn.nn import functional as F
from plugrad_nn.nn.functions.reduction import reduction_named as _reduction
from plugrad_nn.nn.module import Module


class _Loss(Module):
    reduction: str

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.reduction = _reduction(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class CrossEntropyLoss(_WeightedLoss):
    """Negative log-likelihood of classes (or probabilities) under softmax of logits (N, C, ...).

    >>> import plugrad
    >>> logits = plugrad.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> plugrad.nn.CrossEntropyLoss()(logits, plugrad.tensor([0, 2]))
    tensor(0.6691)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(_WeightedLoss):
    """Negative log-likelihood of classes under log-probabilities (N, C, ...).

    >>> import plugrad
    >>> log_probs = plugrad.zeros(2, 4).log_softmax(1)
    >>> plugrad.nn.NLLLoss()(log_probs, plugrad.tensor([0, 2]))
    tensor(1.3863)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class MSELoss(_Loss):
    """Squared differences.

    >>> import plugrad
    >>> plugrad.nn.MSELoss()(plugrad.tensor([1.0, 2.0]), plugrad.tensor([0.0, 4.0]))
    tensor(2.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """Absolute differences.

    >>> import plugrad
    >>> plugrad.nn.L1Loss()(plugrad.tensor([1.0, 2.0]), plugrad.tensor([0.0, 4.0]))
    tensor(1.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squared differences below `beta`, absolute ones above (Girshick 2015, equation 3).

    >>> import plugrad
    >>> plugrad.nn.SmoothL1Loss()(plugrad.tensor([1.0, 2.0]), plugrad.tensor([0.0, 4.0]))
    tensor(1.)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Squared differences below `delta`, absolute ones, times `delta`, above (Huber 1964).

    >>> import plugrad
    >>> plugrad.nn.HuberLoss()(plugrad.tensor([1.0, 2.0]), plugrad.tensor([0.0, 4.0]))
    tensor(1.)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, self.reduction, self.delta)


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence of targets from log-probabilities, with "batchmean".

    >>> import plugrad
    >>> log_probs = plugrad.zeros(2, 4).log_softmax(1)
    >>> plugrad.nn.KLDivLoss(reduction="batchmean")(log_probs, plugrad.eye(2, 4))
    tensor(1.3863)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(_WeightedLoss):
    """Binary cross-entropy of probabilities with targets in [0, 1].

    >>> import plugrad
    >>> plugrad.nn.BCELoss()(plugrad.tensor([0.5, 0.9]), plugrad.tensor([0.0, 1.0]))
    tensor(0.3993)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """Binary cross-entropy of sigmoid(input) with targets in [0, 1].

    >>> import plugrad
    >>> plugrad.nn.BCEWithLogitsLoss()(plugrad.tensor([0.0, 2.0]), plugrad.tensor([0.0, 1.0]))
    tensor(0.4100)
    """

    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input,
            target,
            self.weight,
            reduction=self.reduction,
            pos_weight=self.pos_weight,
        )
