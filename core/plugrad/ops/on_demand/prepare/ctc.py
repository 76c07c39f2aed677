"""Arguments of the connectionist temporal classification, checked in PyTorch's words."""

from __future__ import annotations

# Interpreted: loaded on demand.
from plugrad.dispatch.backends.kernel_errors import not_implemented
from plugrad.dtype import float32, float64
from plugrad.tensor.base import TensorBase, sizes_of

Lengths = tuple[int, ...]
_WHERE = "(while checking arguments for ctc_loss_allocate_outputs)"


def ctc_loss(
    log_probs: TensorBase,
    targets: TensorBase,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int,
    zero_infinity: bool,
) -> tuple[object, ...]:
    sizes = sizes_of(log_probs)
    if log_probs.dtype is not float32 and log_probs.dtype is not float64:
        raise not_implemented("ctc_loss_cpu", log_probs.dtype)
    if 0 in sizes:
        raise RuntimeError("log_probs tensor must not be empty")
    if len(sizes) != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {len(sizes)}-dimensional tensor for argument "
            f"#1 'log_probs' {_WHERE}"
        )
    steps, batch, classes = sizes
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if len(lengths) != batch:
            raise RuntimeError(f"{name} must be of size batch_size")
        if min(lengths) < 0:
            raise RuntimeError(
                f"Expected {name} to have value at least 0, but got value {min(lengths)} {_WHERE}"
            )
    if max(input_lengths) > steps:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value "
            f"{max(input_lengths)} (while checking arguments for ctc_loss_allocate_outputs)"
        )
    _check_targets(sizes_of(targets), target_lengths)
    return (log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)


def _check_targets(sizes: Lengths, lengths: Lengths) -> None:
    if len(sizes) not in (1, 2):
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {len(sizes)}-dimensional tensor for argument #2 "
            f"'targets' {_WHERE}"
        )
    wanted = len(lengths) if len(sizes) == 2 else sum(lengths)
    if sizes[0] != wanted:
        raise RuntimeError(
            f"Expected tensor to have size {wanted} at dimension 0, but got size {sizes[0]} for "
            f"argument #2 'targets' {_WHERE}"
        )
    if len(sizes) == 2 and sizes[1] < max(lengths):
        raise RuntimeError(
            f"Expected tensor to have size at least {max(lengths)} at dimension 1, but got size "
            f"{sizes[1]} for argument #2 'targets' {_WHERE}"
        )
