"""Losses of pairs, margins and counts, composed of other operators."""

# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dispatch.local_state import current_state
from plugrad.dispatch.operator import find_operator
from plugrad.dtype import FLOATING, float32, float64, int64
from plugrad.tensor.base import needs_grad, sizes_of
from plugrad.tensor.calls.broadcasting import broadcast_shapes
from plugrad.tensor.calls.promotion import can_cast, promote_pair
from plugrad.tensor.calls.schema_facts import named_results

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

NONE: Final = 0
MEAN: Final = 1
SUM: Final = 2
# Keeps the cosine of a zero vector finite.
_COSINE_EPSILON: Final = 1e-12


def reduced_by_number(losses: Tensor, reduction: int) -> Tensor:
    """As in PyTorch's losses of elements: any number except 1 and 2 means no reduction."""
    if reduction == MEAN:
        return losses.mean()
    return losses.sum() if reduction == SUM else losses


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int
) -> Tensor:
    ndim = target.ndim
    if ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input1.ndim != ndim + 1 or input2.ndim != ndim + 1:
        raise RuntimeError(
            f"{ndim}D target tensor expects {ndim + 1}D input tensors, but found inputs with "
            f"sizes {list(sizes_of(input1))} and {list(sizes_of(input2))}."
        )
    products = (input1 * input2).sum(dim=ndim)
    square1 = (input1 * input1).sum(dim=ndim) + _COSINE_EPSILON
    square2 = (input2 * input2).sum(dim=ndim) + _COSINE_EPSILON
    cosine = products / (square1 * square2).sqrt()
    close = F.where(target == 1, 1.0 - cosine, 0)
    apart = F.where(target == -1, F.clamp_min(cosine - margin, 0), 0)
    return reduced_by_number(close + apart, reduction)


def hinge_embedding_loss(self: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    # PyTorch takes the margin for a number of the dtype of the input.
    wanted: Any = margin if self.dtype.category >= FLOATING else int(margin)
    apart = F.where(target != 1, F.clamp_min(wanted - self, 0), 0)
    close = F.where(target != -1, self, 0)
    return reduced_by_number(apart + close, reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int
) -> Tensor:
    return reduced_by_number(F.clamp_min(-target * (input1 - input2) + margin, 0), reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float,
    p: float,
    eps: float,
    swap: bool,
    reduction: int,
) -> Tensor:
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative "
            f"{negative.ndim}D inputs"
        )
    near = _distance(anchor, positive, p, eps)
    far = _distance(anchor, negative, p, eps)
    if swap:
        far = F.minimum(far, _distance(positive, negative, p, eps))
    return reduced_by_number(F.clamp_min(near - far + margin, 0), reduction)


def _distance(x: Tensor, y: Tensor, p: float, eps: float) -> Tensor:
    return F.norm(x - y + eps, p, dim=-1)


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    losses = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + (target * (2 * math.pi)).log() * 0.5
        dtype = losses.dtype
        losses = (losses + stirling.masked_fill(target <= 1, 0)).to(dtype)
    return reduced_by_number(losses, reduction)


def soft_margin_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    if current_state().grad_enabled and needs_grad(target):
        raise RuntimeError(
            "The function 'soft_margin_loss' is not differentiable with respect to argument "
            "'target'. This input cannot have requires_grad True."
        )
    shape = sizes_of(self)
    common = broadcast_shapes(shape, sizes_of(target))
    if common != shape:
        raise RuntimeError(
            f"output with shape {list(shape)} doesn't match the broadcast shape {list(common)}"
        )
    if self.dtype.category < FLOATING or not can_cast(promote_pair(self, target), self.dtype):
        given = promote_pair(self, target)
        name = given.scalar_name if given.category >= FLOATING else "Float"
        raise RuntimeError(
            f"result type {name} can't be cast to the desired output type {self.dtype.scalar_name}"
        )
    excess = -(target * self)
    # The derivatives of `softplus` do not cancel where exp overflows.
    losses = excess.exp().log1p() if excess.is_complex() else F.softplus(excess, 1, math.inf)
    return reduced_by_number(losses.to(self.dtype), reduction)


def _check_rows(self: Tensor) -> None:
    """RuntimeError unless it is (N, C), (C) or (): N may be 0."""
    shape = sizes_of(self)
    if len(shape) > 2 or (len(shape) > 0 and shape[-1] == 0):
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(shape)}"
        )


def _check_labels(self: Tensor, target: Tensor, kernel: str) -> None:
    if self.dtype is not float32 and self.dtype is not float64:
        raise not_implemented(kernel, self.dtype)
    if target.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.scalar_name}")


def _gathered(scores: Tensor, labels: Tensor, message: str) -> Tensor:
    """The scores of labels (N, *); RuntimeError if one is not a class."""
    try:
        return scores.gather(1, labels)
    except (RuntimeError, IndexError):
        raise RuntimeError(message) from None


def multi_margin_loss(
    self: Tensor, target: Tensor, p: Any, margin: Any, weight: Tensor | None, reduction: int
) -> Tensor:
    if p != 1 and p != 2:
        raise RuntimeError("only p == 1 and p == 2 supported")
    _check_rows(self)
    shape = sizes_of(self)
    rows = shape[0] if len(shape) == 2 else 1
    classes = shape[-1] if shape else 1
    if target.ndim > 1 or target.numel() != rows:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
            f"samples (batch size). Expected target size [{rows}], but got "
            f"{list(sizes_of(target))}. Input has shape {list(shape)}."
        )
    if weight is not None and sizes_of(weight) != (classes,):
        raise RuntimeError(
            f"inconsistent weight size, expected {classes} but got {list(sizes_of(weight))}"
        )
    _check_labels(self, target, "multi_margin_loss_cpu_kernel")
    if weight is not None and weight.dtype is not self.dtype:
        raise RuntimeError(
            f"expected scalar type {self.dtype.scalar_name} but found {weight.dtype.scalar_name}"
        )
    scores = self.reshape((rows, classes))
    labels = target.reshape((rows, 1))
    own = _gathered(scores, labels, "target out of range")
    excess = _positive(scores - own + margin)
    if p == 2:
        excess = excess * excess
    if weight is not None:
        excess = excess * weight.take(labels)
    places = F.arange(classes, device=self.device)
    losses = excess.masked_fill(labels == places, 0).sum(dim=1) / classes
    return _reduced_rows(losses, reduction, () if target.ndim == 0 else (rows,))


def _positive(excess: Tensor) -> Tensor:
    """0 for the rest, also for nan, and without a slope where the margin is just kept."""
    return F.where(excess > 0, excess, 0)


def _reduced_rows(losses: Tensor, reduction: int, shape: tuple[int, ...]) -> Tensor:
    """As in PyTorch's losses of rows: any number except 0 and 1 means the sum."""
    if reduction != NONE:
        return reduced_by_number(losses, MEAN if reduction == MEAN else SUM)
    return losses if sizes_of(losses) == shape else C.call__unsafe_view(losses, shape)


def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    return _multilabel(self, target, reduction)[0]


def multilabel_margin_loss_forward(self: Tensor, target: Tensor, reduction: int) -> Any:
    losses, is_label = _multilabel(self, target, reduction)
    marks = C.call__unsafe_view(is_label.to(self.dtype), sizes_of(target))
    op = find_operator("plugrad::multilabel_margin_loss_forward")
    assert op is not None
    return named_results(op, losses, marks)


def _multilabel(self: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    _check_rows(self)
    shape = sizes_of(self)
    if sizes_of(target) != shape:
        raise RuntimeError(
            f"inconsistent target size: {list(sizes_of(target))} for input of size: {list(shape)}"
        )
    _check_labels(self, target, "multilabel_margin_loss_forward_out_frame")
    rows = shape[0] if len(shape) == 2 else 1
    classes = shape[-1] if shape else 1
    scores = self.reshape((rows, classes))
    labels = target.reshape((rows, classes))
    # The labels of a row are those before its first -1.
    counts = F.eq((labels < 0).to(int64).cumsum(1), 0)
    known = labels.masked_fill(F.eq(labels, -1), 0)
    own = _gathered(scores, known, "argument #2 'target' is out of range")
    places = F.arange(classes, device=self.device)
    hits = F.logical_and(F.eq(known.unsqueeze(2), places), counts.unsqueeze(2))
    is_label = F.any(hits, dim=1)
    # [row, label, class]: how far the class is from being `1` below the label.
    excess = _positive(1 - own.unsqueeze(2) + scores.unsqueeze(1))
    pairs = F.logical_and(counts.unsqueeze(2), F.logical_not(is_label).unsqueeze(1))
    losses = F.where(pairs, excess, 0).sum(dim=(1, 2)) / classes
    return _reduced_rows(losses, reduction, shape[:-1]), is_label


def nll_loss2d(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> Tensor:
    for name, tensor, ndim in (("inputs", self, 4), ("targets", target, 3)):
        if tensor.ndim != ndim:
            raise RuntimeError(
                f"only batches of spatial {name} supported ({ndim}D tensors), but got "
                f"{name.removesuffix('s')} of size: {list(sizes_of(tensor))}"
            )
    named = {NONE: "none", MEAN: "mean"}.get(reduction, "sum")
    return F.nll_loss(self, target, weight, named, ignore_index)
