"""Loss functions composed of other operators, and decompositions of fused ones."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from plugrad._generated import calls as C
from plugrad._generated import functions as F
from plugrad.dispatch.backends.kernel_errors import (
    NO_PROBABILITIES,
    NO_TARGETS,
    no_class,
    not_implemented,
)
from plugrad.dtype import FLOATING, iinfo, int64
from plugrad.ops.formulas.loss import reduced
from plugrad.ops.prepare import loss as prepare
from plugrad.ops.prepare.loss import check_reduction
from plugrad.tensor.base import sizes_of
from plugrad.tensor.calls.promotion import can_cast, promote_pair, to_dtype

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def cross_entropy_loss(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
) -> Tensor:
    check_reduction(reduction)
    shape = sizes_of(self)
    dim = 0 if len(shape) == 1 else 1
    if shape == sizes_of(target):
        return _with_probabilities(
            self, target, weight, reduction, ignore_index, label_smoothing, dim
        )
    if label_smoothing != 0.0:
        return _with_smoothed_labels(
            self, target, weight, reduction, ignore_index, label_smoothing, dim
        )
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    return nll_loss(C.call__log_softmax(self, dim, False), target, weight, reduction, ignore_index)


def _with_probabilities(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    dim: int,
) -> Tensor:
    shape = sizes_of(self)
    if target.dtype.category != FLOATING:
        raise RuntimeError(
            "Expected floating point type for target with class probabilities, got "
            f"{target.dtype.scalar_name}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    _check_smoothing(label_smoothing)
    classes = shape[dim] if shape else 1
    if label_smoothing > 0.0:
        target = target * (1.0 - label_smoothing) + _share(label_smoothing, classes)
    losses = F.log_softmax(self, dim) * target
    if weight is not None:
        _check_weight("cross_entropy: ", weight, classes)
        losses = losses * _along_classes(weight, len(shape))
    if reduction == "none":
        return -losses.sum(dim=(dim,))
    count = 1
    for size in shape:
        count *= size
    total = -losses.sum()
    # An empty batch has no mean: PyTorch divides by the number of samples all the same.
    return total / (count // max(classes, 1)) if reduction == "mean" else total


def _check_smoothing(label_smoothing: float) -> None:
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")


def _share(label_smoothing: float, classes: int) -> float:
    """What smoothing gives each class: infinity without classes, as C++ divides."""
    return label_smoothing / classes if classes else math.inf


def _check_weight(where: str, weight: Tensor, classes: int) -> None:
    if sizes_of(weight) != (classes,):
        raise RuntimeError(
            f"{where}weight tensor should be defined either for all {classes} classes or no "
            f"classes but got weight tensor of shape: {list(sizes_of(weight))}"
        )


def _along_classes(weight: Tensor, ndim: int) -> Tensor:
    return weight if ndim < 2 else weight.reshape((1, -1) + (1,) * (ndim - 2))


def _with_smoothed_labels(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    dim: int,
) -> Tensor:
    """A mixture of the loss for the labels and the mean of those for all classes."""
    _check_smoothing(label_smoothing)
    shape = sizes_of(self)
    classes = shape[dim]
    logarithms = F._log_softmax(self, dim, False)
    labelled = nll_loss(logarithms, target, weight, reduction, ignore_index)
    if weight is None:
        smooth = -logarithms.sum(dim=(dim,))
    else:
        smooth = -(logarithms * _along_classes(weight, len(shape))).sum(dim=(dim,))
    ignored = target == ignore_index
    if smooth.ndim == ignored.ndim:
        smooth = smooth.masked_fill(ignored, 0.0)
    if reduction == "none":
        mixed = smooth
    elif reduction == "sum":
        mixed = smooth.sum()
    elif weight is None:
        mixed = smooth.sum() / ignored.logical_not().sum()
    else:
        counted = weight.gather(0, target.masked_fill(ignored, 0).flatten())
        mixed = smooth.sum() / counted.masked_fill(ignored.flatten(), 0.0).sum()
    return labelled * (1.0 - label_smoothing) + mixed * _share(label_smoothing, classes)


def nll_loss(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int
) -> Tensor:
    shape = sizes_of(self)
    ndim = len(shape)
    if ndim == 2 and target.ndim == 1 and sizes_of(target)[0] == shape[0]:
        return C.call_nll_loss_forward(self, target, weight, reduction, ignore_index)[0]
    check_reduction(reduction)
    if ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    _check_target(shape, sizes_of(target))
    return C.call_nll_loss_forward(self, target, weight, reduction, ignore_index)[0]


def _check_target(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    ndim = len(shape)
    if ndim == 1:
        if len(target) > 1 or (target and target[0] != 1):
            raise RuntimeError(
                "0D or 1D target tensor expected, multi-target not supported"
                if len(target) > 1
                else f"size mismatch (got input: {list(shape)}, target: {list(target)})"
            )
        return
    batch = target[0] if target else 0
    if shape[0] != batch:
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size ({batch})."
        )
    if ndim == 2:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target[1:] != shape[2:]:
        if ndim == 4 and len(target) != 3:
            raise RuntimeError(
                "only batches of spatial targets supported (3D tensors) but got targets of "
                f"dimension: {len(target)}"
            )
        if ndim == 4:
            raise RuntimeError(f"size mismatch (got input: {list(shape)} , target: {list(target)}")
        raise RuntimeError(f"Expected target size {[shape[0], *shape[2:]]}, got {list(target)}")


def _marked(
    self: Tensor, target: Tensor, ignore_index: int
) -> tuple[Tensor, Tensor, tuple[int, ...], int]:
    """Which class of each sample is its target, which targets count, their shape, the dimension
    of classes. IndexError if a target that counts is not a class."""
    shape = sizes_of(self)
    dim = 1 if len(shape) > 1 else 0
    targets: Any = to_dtype(target, int64)
    places = targets.reshape((*shape[:dim], *shape[dim + 1 :]))
    known = F.ne(places, ignore_index)
    outside = F.logical_or(F.lt(places, 0), F.ge(places, shape[dim]))
    wrong = F.logical_and(known, outside)
    if bool(F.any(wrong).item()):
        first = F.amax(F.where(wrong, places, iinfo(int64).min))
        raise no_class(first.item())
    along = [1] * len(shape)
    along[dim] = shape[dim]
    classes = F.arange(shape[dim], dtype=int64, device=self.device).view(tuple(along))
    hit = F.logical_and(F.eq(classes, places.unsqueeze(dim)), known.unsqueeze(dim))
    return hit, known, sizes_of(target), dim


def _class_factors(
    known: Tensor, hit: Tensor, weight: Tensor | None, dim: int, like: Tensor
) -> Any:
    """The weight of each target; 0 if it does not count."""
    if weight is None:
        return to_dtype(known, like.dtype)
    along = [1] * like.ndim
    along[dim] = sizes_of(weight)[0]
    return F.where(hit, weight.view(tuple(along)), 0).sum(dim=(dim,))


def nll_loss_by_mask(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int
) -> tuple[Tensor, Tensor]:
    prepare.nll_loss_forward(self, target, weight, reduction, ignore_index)
    hit, known, shape, dim = _marked(self, target, ignore_index)
    factors = _class_factors(known, hit, weight, dim, self)
    losses = -(F.where(hit, self, 0).sum(dim=(dim,)) * factors)
    total: Tensor = factors.sum()
    if reduction == "none":
        return losses.reshape(shape), total
    loss: Tensor = losses.sum()
    return (loss / total if reduction == "mean" else loss), total


def nll_loss_backward_by_mask(
    grad: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    hit, known, _, dim = _marked(self, target, ignore_index)
    share = -grad / total_weight if reduction == "mean" else -grad
    if reduction == "none":
        share = share.reshape(sizes_of(known))
    share = share * _class_factors(known, hit, weight, dim, self)
    return F.where(hit, share.unsqueeze(dim), 0)


def bce_by_log(self: Tensor, target: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    checked: Any = prepare.binary_cross_entropy(self, target, weight, reduction)
    factor = checked[2]
    for part, words in ((self, NO_PROBABILITIES), (target, NO_TARGETS)):
        if not bool(F.all(F.logical_and(F.ge(part, 0), F.le(part, 1))).item()):
            raise RuntimeError(words)
    losses = (target - 1.0) * F.clamp_min(F.log1p(-self), -100)
    losses = losses - target * F.clamp_min(F.log(self), -100)
    return reduced(losses if factor is None else losses * factor, reduction)


def bce_backward_by_quotient(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: str
) -> Tensor:
    slope = (self - target) / F.clamp_min((1.0 - self) * self, 1e-12)
    if weight is not None:
        slope = slope * weight
    return slope * (grad / self.numel() if reduction == "mean" else grad)


def mse_loss_by_square(self: Tensor, target: Tensor, reduction: str) -> Tensor:
    prepare.mse_loss(self, target, reduction)
    difference = self - target
    return reduced(difference * difference, reduction)


def mse_loss_backward_by_product(
    grad: Tensor, self: Tensor, target: Tensor, reduction: str
) -> Tensor:
    difference = self - target
    factor = 2.0 / max(difference.numel(), 1) if reduction == "mean" else 2.0
    return difference * factor * grad


def l1_loss(self: Tensor, target: Tensor, reduction: str) -> Tensor:
    check_reduction(reduction)
    return reduced((self - target).abs(), reduction)


def smooth_l1_loss(self: Tensor, target: Tensor, reduction: str, beta: float) -> Tensor:
    check_reduction(reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(self, target, reduction)
    difference = _difference(self, target, "smooth_l1_cpu")
    distance = difference.abs()
    far = distance >= beta
    near = _square_beside(far, difference) * (0.5 / beta)
    return reduced(F.where(far, distance - 0.5 * beta, near), reduction)


def huber_loss(self: Tensor, target: Tensor, reduction: str, delta: float) -> Tensor:
    check_reduction(reduction)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    dtype = promote_pair(self, target)
    if not can_cast(dtype, self.dtype):
        raise RuntimeError(
            f"result type {dtype.scalar_name} can't be cast to the desired output type "
            f"{self.dtype.scalar_name}"
        )
    difference = _difference(self, target, "huber_cpu")
    distance = difference.abs()
    far = distance > delta
    near = _square_beside(far, difference) * 0.5
    # As in PyTorch the losses have the dtype of the input.
    losses = F.where(far, (distance - 0.5 * delta) * delta, near).to(self.dtype)
    return reduced(losses, reduction)


def _difference(self: Tensor, target: Tensor, kernel: str) -> Tensor:
    """In the dtype of both, in which bools are numbers."""
    dtype = promote_pair(self, target)
    if dtype.category < FLOATING:
        raise not_implemented(kernel, dtype)
    return self.to(dtype) - target.to(dtype)


def _square_beside(far: Tensor, difference: Tensor) -> Tensor:
    """The square where `far` is False, else 0: the square there may be infinite, with gradient
    nan."""
    inside = difference.masked_fill(far, 0)
    return inside * inside


def bce_with_logits_by_softplus(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    reduction: str,
) -> Tensor:
    prepare.binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction)
    scale = 1.0 if pos_weight is None else (pos_weight - 1.0) * target + 1.0
    losses = (1.0 - target) * self - F.log_sigmoid(self) * scale
    return reduced(losses if weight is None else losses * weight, reduction)


def kl_div(self: Tensor, target: Tensor, reduction: str, log_target: bool) -> Tensor:
    check_reduction(reduction)
    if self.dtype.is_complex or target.dtype.is_complex:
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if self.dtype.category < FLOATING or target.dtype.category < FLOATING:
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        return reduced(target.exp() * (target - self), reduction)
    return reduced(F.xlogy(target, target) - target * self, reduction)
