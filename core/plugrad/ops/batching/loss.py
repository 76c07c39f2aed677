"""Rules of losses: computed for each sample, and then reduced for each element of the batch."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
import math
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.dtype import int64
from plugrad.ops.batching.dims import cast, first_of, logical_rank, logical_sizes, padded, spread
from plugrad.ops.prepare import loss as prepare
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    """Losses [B, *], reduced for each element of the batch."""
    if reduction == "none":
        return losses
    count, *sizes = sizes_of(losses)
    flat = F.reshape(losses, (count, math.prod(sizes)))
    return F.mean(flat, 1) if reduction == "mean" else F.sum(flat, 1)


class _Labelled:
    """Scores and targets of a batch, folded into more samples.

    Attributes:
        scores: (B * N, C, *); of a single sample without N, (B, C).
        target: (B * N, *), int64.
    """

    def __init__(self, info: VmapInfo, dims: Dims, scores: Tensor, target: Tensor) -> None:
        self.batch_size = info.batch_size
        self.shape = logical_sizes(target, dims[1])
        front = spread(scores, dims[0], info.batch_size)
        targets = cast(spread(target, dims[1], info.batch_size), int64)
        sizes = sizes_of(front)
        if len(sizes) > 2:
            front = F.reshape(front, (sizes[0] * sizes[1], *sizes[2:]))
        self.scores = front
        shape = sizes_of(front)
        self.target = F.reshape(targets, (shape[0], *shape[2:]))

    def apart(self, samples: Tensor) -> Tensor:
        """Samples' numbers, (B, *target)."""
        return F.reshape(samples, (self.batch_size, *self.shape))

    def folded(self, samples: Tensor) -> Tensor:
        """Undo `apart`."""
        return F.reshape(samples, sizes_of(self.target))

    def factors(self, weight: Tensor | None, dim: int | None, ignore_index: int) -> Tensor:
        """What the samples weigh, (B, *target); 0 for one that does not count."""
        target = self.apart(self.target)
        known = target != ignore_index
        if weight is None:
            return cast(known, self.scores.dtype)
        flat = F.reshape(F.where(known, target, 0), (self.batch_size, math.prod(self.shape)))
        weights = F.gather(spread(weight, dim, self.batch_size), 1, flat)
        return F.where(known, F.reshape(weights, sizes_of(target)), 0)


def _checked(dims: Dims, args: tuple[Any, ...], how: tuple[Any, ...]) -> None:
    prepare.nll_loss_forward(
        *[first_of(value, dim) for value, dim in zip(args, dims, strict=False)], *how
    )


def nll_loss_forward(
    info: VmapInfo,
    dims: Dims,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
) -> tuple[Any, Any]:
    _checked(dims, (self, target, weight), (reduction, ignore_index))
    labelled = _Labelled(info, dims, self, target)
    inside = weight if dims[2] is None else None
    losses = labelled.apart(
        F.nll_loss_forward(labelled.scores, labelled.target, inside, "none", ignore_index)[0]
    )
    factors = labelled.factors(weight, dims[2], ignore_index)
    if dims[2] is not None:
        losses = losses * factors
    total = _reduced(factors, "sum")
    if reduction == "none":
        return (losses, total), (0, 0)
    loss = _reduced(losses, "sum")
    return (loss / total if reduction == "mean" else loss, total), (0, 0)


def nll_loss_backward(
    info: VmapInfo,
    dims: Dims,
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    total_weight: Tensor,
) -> tuple[Any, Any]:
    size = info.batch_size
    labelled = _Labelled(info, dims[1:3], self, target)
    share = spread(grad_output, dims[0], size)
    if reduction == "mean":
        share = share / spread(total_weight, dims[6], size)
    if reduction != "none":
        ones = (1,) * len(labelled.shape)
        share = F.expand(F.reshape(share, (size, *ones)), (size, *labelled.shape))
    if dims[3] is not None:
        share = share * labelled.factors(weight, dims[3], ignore_index)
    found = F.nll_loss_backward(
        labelled.folded(share),
        labelled.scores,
        labelled.target,
        weight if dims[3] is None else None,
        "none",
        ignore_index,
        F.ones((), dtype=self.dtype, device=self.device),
    )
    return F.reshape(found, (size, *logical_sizes(self, dims[1]))), 0


def binary_cross_entropy(
    info: VmapInfo,
    dims: Dims,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
) -> tuple[Any, Any]:
    prepare.binary_cross_entropy(
        first_of(self, dims[0]), first_of(target, dims[1]), first_of(weight, dims[2]), reduction
    )
    rank = logical_rank(self, dims[0])
    losses = F.binary_cross_entropy(
        spread(self, dims[0], info.batch_size),
        spread(target, dims[1], info.batch_size),
        reduction="none",
    )
    if weight is not None:
        losses = losses * padded(weight, dims[2], rank)
    return _reduced(losses, reduction), 0


RULES: Final[dict[str, Rule]] = {
    "binary_cross_entropy": binary_cross_entropy,
    "nll_loss_backward": nll_loss_backward,
    "nll_loss_forward": nll_loss_forward,
}
