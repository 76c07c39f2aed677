"""Rules of the connectionist temporal classification: a batch of batches is one larger batch."""

# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: a rule runs once for a whole batch.
from typing import TYPE_CHECKING, Any, Final

from plugrad._generated import functions as F
from plugrad.ops.batching.dims import spread
from plugrad.tensor.base import sizes_of

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor
    from plugrad.ops.batching.table import Rule, VmapInfo

Dims = tuple[Any, ...]
# Numbers, the same for all elements of the batch, or a tensor of them, which may be mapped over.
Lengths = Any


def _lengths(info: VmapInfo, dim: Any, lengths: Lengths) -> Lengths:
    """The lengths of all sequences in the order of `_folded`."""
    if isinstance(lengths, tuple):
        return lengths * info.batch_size
    return spread(lengths, dim, info.batch_size).reshape((-1,))


def _folded(info: VmapInfo, dims: Dims, log_probs: Tensor, targets: Tensor) -> tuple[Any, Any]:
    """(T, B * N, C), and the labels of all sequences in the same order."""
    rows = spread(log_probs, dims[0], info.batch_size).transpose(0, 1)
    steps, size, batch, classes = sizes_of(rows)
    labels = spread(targets, dims[1], info.batch_size)
    return rows.reshape((steps, size * batch, classes)), labels.flatten(0, 1)


def _ctc_loss(
    info: VmapInfo,
    dims: Dims,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int,
    zero_infinity: bool,
) -> tuple[Any, Any]:
    size = info.batch_size
    rows, labels = _folded(info, dims, log_probs, targets)
    losses, log_alpha = F._ctc_loss(
        rows,
        labels,
        _lengths(info, dims[2], input_lengths),
        _lengths(info, dims[3], target_lengths),
        blank,
        zero_infinity,
    )
    batch = sizes_of(rows)[1] // size
    return (
        losses.reshape((size, batch)),
        log_alpha.reshape((size, batch, *sizes_of(log_alpha)[1:])),
    ), (0, 0)


def _ctc_loss_backward(
    info: VmapInfo,
    dims: Dims,
    grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    neg_log_likelihood: Tensor,
    log_alpha: Tensor,
    blank: int,
    zero_infinity: bool,
) -> tuple[Any, Any]:
    size = info.batch_size
    rows, labels = _folded(info, dims[1:3], log_probs, targets)
    found = F._ctc_loss_backward(
        spread(grad, dims[0], size).flatten(0, 1),
        rows,
        labels,
        _lengths(info, dims[3], input_lengths),
        _lengths(info, dims[4], target_lengths),
        spread(neg_log_likelihood, dims[5], size).flatten(0, 1),
        spread(log_alpha, dims[6], size).flatten(0, 1),
        blank,
        zero_infinity,
    )
    steps, _, classes = sizes_of(found)
    return found.reshape((steps, size, sizes_of(rows)[1] // size, classes)), 1


RULES: Final[dict[str, Rule]] = {
    "_ctc_loss": _ctc_loss,
    "_ctc_loss_backward": _ctc_loss_backward,
}
