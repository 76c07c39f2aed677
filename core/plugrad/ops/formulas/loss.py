"""Gradients of loss functions, and of those gradients."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plugrad._generated import calls as C
from plugrad._generated import functions as F

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

# PyTorch's bound for x * (1 - x) in the gradient of the binary cross-entropy.
_BCE_EPSILON: Final = 1e-12


def reduced(losses: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return losses.mean()
    return losses.sum() if reduction == "sum" else losses


def _shared(grad: Tensor, count: int, reduction: str) -> Tensor:
    """What each element gets of the gradient of a reduced loss."""
    return grad / count if reduction == "mean" else grad


def nll_loss_gradient(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    return C.call_nll_loss_backward(grad, x, target, weight, reduction, ignore_index, total_weight)


def nll_loss_double_backward(
    grad: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int
) -> Tensor:
    """The loss is linear in its input: the same loss of the cotangent."""
    return C.call_nll_loss_forward(grad, target, weight, reduction, ignore_index)[0]


def mse_loss_gradient(grad: Tensor, x: Tensor, target: Tensor, reduction: str) -> Tensor:
    return C.call_mse_loss_backward(grad, x, target, reduction)


def mse_loss_double_backward_grad_output(
    grad: Tensor, x: Tensor, target: Tensor, reduction: str
) -> Tensor:
    product = grad * (x - target) * 2.0
    return reduced(product, reduction)


def mse_loss_double_backward(grad: Tensor, grad_output: Tensor, reduction: str) -> Tensor:
    return _shared(grad * grad_output * 2.0, grad.numel(), reduction)


def bce_gradient(
    grad: Tensor, x: Tensor, target: Tensor, weight: Tensor | None, reduction: str
) -> Tensor:
    return C.call_binary_cross_entropy_backward(grad, x, target, weight, reduction)


def bce_target_gradient(
    grad: Tensor, x: Tensor, target: Tensor, weight: Tensor | None, reduction: str
) -> Tensor:
    """log((1 - x) / x), each logarithm at least -100."""
    logit = (1.0 - x).log().clamp(min=-100) - x.log().clamp(min=-100)
    slope = grad * logit
    if weight is not None:
        slope = slope * weight
    return _shared(slope, x.numel(), reduction)


def _bce_slope(x: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    slope = (x - target) / ((1.0 - x) * x).clamp(min=_BCE_EPSILON)
    return slope if weight is None else slope * weight


def bce_double_backward_grad_output(
    grad: Tensor, x: Tensor, target: Tensor, weight: Tensor | None, reduction: str
) -> Tensor:
    return reduced(grad * _bce_slope(x, target, weight), reduction)


def bce_double_backward(
    grad: Tensor,
    grad_output: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
) -> Tensor:
    spread = ((1.0 - x) * x).clamp(min=_BCE_EPSILON)
    slope = (x * x - x * target * 2.0 + target) / (spread * spread)
    if weight is not None:
        slope = slope * weight
    return _shared(grad * grad_output * slope, x.numel(), reduction)


def bce_double_backward_target(
    grad: Tensor,
    grad_output: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
) -> Tensor:
    slope = -1.0 / ((1.0 - x) * x).clamp(min=_BCE_EPSILON)
    if weight is not None:
        slope = slope * weight
    return _shared(grad * grad_output * slope, x.numel(), reduction)


def bce_with_logits_gradient(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    reduction: str,
) -> Tensor:
    if pos_weight is None:
        slope = x.sigmoid() - target
    else:
        positive = target * pos_weight
        slope = (positive + 1.0 - target) * x.sigmoid() - positive
    slope = slope * _shared(grad, x.numel(), reduction)
    return slope if weight is None else slope * weight


def bce_with_logits_target_gradient(
    grad: Tensor, x: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: str
) -> Tensor:
    slope = -x
    if pos_weight is not None:
        slope = F.log_sigmoid(-x) - F.log_sigmoid(x) * pos_weight
    slope = slope * _shared(grad, x.numel(), reduction)
    return slope if weight is None else slope * weight
