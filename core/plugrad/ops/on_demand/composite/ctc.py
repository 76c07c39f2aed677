"""Connectionist temporal classification: the recursions over time, for all sequences at once.

The states of a sequence of labels l are blank, l[0], blank, l[1], ..., blank: 2 S + 1 of them.
`alpha[t, s]` is the probability of all paths to state s at time t, and `beta[t, s]` of all paths
from there. Both are stored as logarithms. States beyond the end of a shorter sequence have
probability 0, times beyond the end of its input do not count.

Source: Graves et al., "Connectionist Temporal Classification", 2006, section 4.1.
"""

# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from plugrad._generated import functions as F
from plugrad.dtype import FLOATING, bool_, int64
from plugrad.ops.composite.selection.positions import index_tensor, mask_tensor
from plugrad.ops.on_demand.composite.margin_losses import MEAN, reduced_by_number
from plugrad.ops.on_demand.prepare import ctc as prepare
from plugrad.tensor.base import TensorBase, sizes_of
from plugrad.tensor.interop.arrays import host_array
from plugrad.tensor.levels import is_mapped

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

Lengths = tuple[int, ...]


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    reduction: int,
    zero_infinity: bool,
) -> Tensor:
    batched = log_probs.ndim != 2
    rows = log_probs if batched else log_probs.unsqueeze(1)
    if not batched and targets.ndim == 1:
        targets = targets.unsqueeze(0)
    losses: Tensor = F._ctc_loss(
        rows, targets, input_lengths, target_lengths, blank, zero_infinity
    )[0]
    if zero_infinity:
        losses = F.where(losses == math.inf, 0, losses)
    if reduction == MEAN:
        if isinstance(target_lengths, TensorBase):
            lengths: Any = F.clamp(target_lengths, 1).to(losses.device)
        else:
            lengths = index_tensor(np.maximum(target_lengths, 1), losses)
        return (losses / F._to_copy(lengths, losses.dtype)).mean()
    return reduced_by_number(losses if batched else losses.squeeze(0), reduction)


def ctc_loss_of_tensors(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    reduction: int,
    zero_infinity: bool,
) -> Tensor:
    # Each element of a batch may have its own, which only the rule of `_ctc_loss` reads.
    steps: Any = input_lengths
    sizes: Any = target_lengths
    if not is_mapped(input_lengths) and not is_mapped(target_lengths):
        steps, sizes = _numbers(input_lengths, target_lengths)
    return ctc_loss(log_probs, targets, steps, sizes, blank, reduction, zero_infinity)


def ctc_losses_of_tensors(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    zero_infinity: bool,
) -> Any:
    lengths = _numbers(input_lengths, target_lengths)
    return F._ctc_loss(log_probs, targets, *lengths, blank, zero_infinity)


def ctc_backward_of_tensors(
    grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    *rest: Any,
) -> Any:
    if log_probs.device.type == "meta":
        return F.empty_like(log_probs)
    lengths = _numbers(input_lengths, target_lengths)
    return F._ctc_loss_backward(grad, log_probs, targets, *lengths, *rest)


def _numbers(input_lengths: Tensor, target_lengths: Tensor) -> list[list[int]]:
    found: list[list[int]] = []
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if lengths.dtype.category >= FLOATING or lengths.dtype is bool_:
            raise RuntimeError(f"{name} must be integral")
        found.append([int(length) for length in np.ravel(host_array(lengths))])
    return found


@dataclass(frozen=True)
class _States:
    """What the recursions need of the labels.

    Attributes:
        classes: of each state, (N, S): a blank or a label; a blank beyond the end.
        skips: which states may follow the last but one: labels unlike the label before, (N, S).
        ends: which states a path may end in, (N, S).
        valid: which states are not beyond the end, (N, S).
        emitted: the log-probability of the state's class at each time, (T, N, S).
        last: at which times a sequence ends, (T, N, 1).
    """

    classes: Any
    skips: Any
    ends: Any
    valid: Any
    emitted: Any
    last: Any


def _states(
    log_probs: Tensor,
    targets: Any,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int,
) -> _States:
    steps, batch, _ = sizes_of(log_probs)
    longest = max(target_lengths)
    lengths = np.asarray(target_lengths)[:, None]
    labels = F._to_copy(_padded(targets, target_lengths, longest), int64)
    known = mask_tensor(np.arange(longest) < lengths, log_probs)
    labels = F.where(known, labels, blank)
    blanks: Any = F.full((batch, longest + 1, 1), blank, dtype=int64, device=log_probs.device)
    pairs = F.cat([blanks[:, :-1], labels.unsqueeze(2)], 2).reshape((batch, 2 * longest))
    classes: Any = F.cat([pairs, blanks[:, -1]], 1)
    places = np.arange(2 * longest + 1)
    is_label = np.broadcast_to(places % 2 == 1, (batch, 2 * longest + 1))
    unlike = F.ne(classes[:, 2:], classes[:, :-2])
    never = F.zeros((batch, min(2, 2 * longest + 1)), dtype=bool_, device=log_probs.device)
    skips = F.logical_and(F.cat([never, unlike], 1), mask_tensor(is_label, log_probs))
    return _States(
        classes=classes,
        skips=skips,
        ends=mask_tensor((places == 2 * lengths) | (places == 2 * lengths - 1), log_probs),
        valid=mask_tensor(places <= 2 * lengths, log_probs),
        emitted=F.gather(log_probs, 2, classes.expand((steps, *sizes_of(classes)))),
        last=mask_tensor(
            (np.arange(steps)[:, None] == np.asarray(input_lengths) - 1)[:, :, None], log_probs
        ),
    )


def _padded(targets: Any, lengths: Lengths, longest: int) -> Any:
    """The labels of each sequence in a row, (N, longest), with anything behind them."""
    if targets.ndim == 2:
        return targets[:, :longest]
    if targets.numel() == 0:
        return F.zeros((len(lengths), longest), dtype=targets.dtype, device=targets.device)
    starts = np.cumsum((0, *lengths[:-1]))[:, None]
    places = np.minimum(starts + np.arange(longest), targets.numel() - 1)
    return F.take(targets, index_tensor(places, targets))


def _log_sum(terms: list[Tensor]) -> Tensor:
    """log(sum of exp), also of minus infinities only."""
    largest = terms[0]
    for term in terms[1:]:
        largest = F.maximum(largest, term)
    shift = F.where(largest == -math.inf, 0, largest)
    total = F.exp(terms[0] - shift)
    for term in terms[1:]:
        total = total + F.exp(term - shift)
    return F.log(total) + shift


def _shifted(x: Any, count: int, size: int) -> Tensor:
    """Along the states: x[:, s - count], and minus infinity where there is none."""
    filled = F.full(
        (sizes_of(x)[0], min(abs(count), size)), -math.inf, dtype=x.dtype, device=x.device
    )
    if count > 0:
        return F.cat([filled, x[:, : max(size - count, 0)]], 1)
    return F.cat([x[:, min(-count, size) :], filled], 1)


def ctc_by_recursion(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int,
    zero_infinity: bool,
) -> tuple[Tensor, Tensor]:
    prepare.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    states = _states(log_probs, targets, input_lengths, target_lengths, blank)
    steps, batch, size = sizes_of(states.emitted)
    first = mask_tensor(np.broadcast_to(np.arange(size) < 2, (batch, size)), log_probs)
    impossible = F.where(F.logical_not(states.valid), -math.inf, states.emitted)
    alpha = F.where(first, impossible[0], -math.inf)
    alphas = [alpha]
    for step in range(1, steps):
        skipped = F.where(states.skips, _shifted(alpha, 2, size), -math.inf)
        alpha = _log_sum([alpha, _shifted(alpha, 1, size), skipped]) + impossible[step]
        alphas.append(alpha)
    log_alpha = F.stack(alphas, 0)
    final = F.where(F.logical_and(states.last, states.ends), log_alpha, -math.inf)
    likelihood = F.logsumexp(F.amax(final, dim=(0,)), 1)
    # Without any input only an empty sequence is possible.
    for length, value in ((0, 0.0), (1, -math.inf)):
        empty = np.asarray(input_lengths) == 0
        chosen = empty & (np.minimum(target_lengths, 1) == length)
        if chosen.any():
            likelihood = F.where(mask_tensor(chosen, log_probs), value, likelihood)
    return -likelihood, log_alpha.transpose(0, 1).contiguous()


def ctc_backward_by_recursion(
    grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    neg_log_likelihood: Tensor,
    log_alpha: Tensor,
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    prepare.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    states = _states(log_probs, targets, input_lengths, target_lengths, blank)
    steps, batch, size = sizes_of(states.emitted)
    ends = F.where(states.ends, 0.0, -math.inf)
    ends = F._to_copy(ends, log_probs.dtype)
    beta = F.where(states.last[steps - 1], ends, -math.inf)
    betas = [beta]
    for step in range(steps - 2, -1, -1):
        reached = beta + states.emitted[step + 1]
        skipped = _shifted(F.where(states.skips, reached, -math.inf), -2, size)
        beta = _log_sum([reached, _shifted(reached, -1, size), skipped])
        beta = F.where(states.last[step], ends, beta)
        betas.append(beta)
    betas.reverse()
    losses = neg_log_likelihood.reshape((batch, 1))
    paths = F.exp(log_alpha.transpose(0, 1) + F.stack(betas, 0) + losses)
    index = states.classes.expand((steps, batch, size))
    expected = F.scatter_add(F.zeros_like(log_probs), 2, index, paths)
    counts = np.arange(steps)[:, None] < np.asarray(input_lengths)
    inside = mask_tensor(counts[:, :, None], log_probs)
    if zero_infinity:
        inside = F.logical_and(inside, F.ne(losses, math.inf))
    # As in PyTorch, the gradient of an infinite loss is nan for every class.
    slope = F.where(losses == math.inf, math.nan, F.exp(log_probs) - expected)
    return F.where(inside, slope * grad.reshape((batch, 1)), 0)
