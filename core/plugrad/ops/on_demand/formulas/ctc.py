"""The gradient of the connectionist temporal classification as a linear map."""

# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def ctc_tangent(
    tangent: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    neg_log_likelihood: Tensor,
    log_alpha: Tensor,
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    """What the losses change by if `log_probs` change by `tangent`."""
    slope = F._ctc_loss_backward(
        F.ones_like(neg_log_likelihood),
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        neg_log_likelihood,
        log_alpha,
        blank,
        zero_infinity,
    )
    return (slope * tangent).sum(dim=(0, 2))
