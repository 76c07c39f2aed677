"""PowerSGD: communicates gradients as products of two thin matrices.

Source: Vogels, Karimireddy and Jaggi, "PowerSGD: Practical low-rank gradient compression for
distributed optimization", 2019.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plugrad
from plugrad import Tensor
from plugrad_distributed.data_parallel.buckets import GradBucket
from plugrad_distributed.distributed.algorithms.ddp_comm_hooks.default_hooks import average
from plugrad_distributed.distributed.collectives import all_reduce
from plugrad_distributed.distributed.queries import get_default_group
from plugrad_distributed.futures import Future
from plugrad_distributed.groups.process_group import ProcessGroup

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

logger = logging.getLogger(__name__)


class PowerSGDState:
    """The state and the options of PowerSGD.

    Args:
        process_group: the ranks; all for None.
        matrix_approximation_rank: the number of columns of the thin matrices.
        start_powerSGD_iter: the number of first iterations without compression.
        min_compression_rate: a gradient of n times m elements is compressed if this times
            (n + m) * rank is smaller than n * m.
        use_error_feedback: add the error of compression to the gradients of the next iteration.
        warm_start: start with the matrices of the previous iteration.
        orthogonalization_epsilon: accepted and ignored: a QR decomposition makes the columns
            orthogonal, and it handles columns of zeros.
        random_seed: the seed of the first matrices; the same on all ranks.
        compression_stats_logging_frequency: the number of iterations between logs of the rate.
        batch_tensors_with_same_shape: compute gradients of one shape together.

    Raises:
        ValueError: compression would start before the buckets have their final order.

    Attributes:
        iter: the number of iterations so far.
        error_dict, q_memory_dict: the error of compression and the last matrices, by bucket.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import (
    ...     PowerSGDState,
    ...     powerSGD_hook,
    ... )
    >>> def program():
    ...     net = plugrad.nn.parallel.DistributedDataParallel(plugrad.nn.Linear(16, 16))
    ...     state = PowerSGDState(None, start_powerSGD_iter=2)
    ...     net.register_comm_hook(state, powerSGD_hook)
    ...     for _ in range(3):
    ...         net(plugrad.ones(1, 16)).sum().backward()
    ...     return state.iter, state.compression_stats()
    >>> dist.run_ranks(program, 2)[0]  # the last of 3 iterations sent 48 of 272 elements
    (3, (5.666666666666667, 272, 48))
    """

    def __init__(
        self,
        process_group: ProcessGroup | None,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is "
                "enabled, because PowerSGD can only be applied after the first two iterations in "
                "DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = np.random.RandomState(random_seed)
        self.error_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, list[Tensor]] = {}
        self.iter = 0
        self.total_numel_before_compression = 0
        self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape

    def __getstate__(self) -> dict[str, Any]:
        """The state without the group; after loading, it is the default group."""
        return {key: value for key, value in vars(self).items() if key != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.process_group = get_default_group()
        vars(self).update(state)

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count an iteration at its last bucket."""
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self) -> tuple[float, int, int]:
        """(rate, elements before, elements after): what compression saved so far."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0), before, after

    def _is_worth_it(self, matrix: Tensor) -> bool:
        """Whether a matrix is compressed; also updates the statistics."""
        n, m = matrix.shape
        compressed = (n + m) * min(n, m, self.matrix_approximation_rank)
        worth = compressed * self.min_compression_rate < n * m
        self.total_numel_before_compression += n * m
        self.total_numel_after_compression += compressed if worth else n * m
        return bool(worth)

    def _log(self, bucket: GradBucket) -> None:
        if bucket.is_last() and self.iter % self.compression_stats_logging_frequency == 0:
            logger.info(
                "Compression stats: iter %s, total before compression %s, total after compression "
                "%s, rate %s",
                *(self.iter, *self.compression_stats()[1:], self.compression_stats()[0]),
            )


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Average gradients, with each large one M approximated as P Q^T: P is an orthogonal basis of
    the columns of mean(M) Q', with Q' from the previous iteration, and Q is mean(M)^T P.

    Gradients that are vectors or too small are averaged without compression.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
    >>> def program():
    ...     options = {"use_error_feedback": False, "warm_start": False}
    ...     state = power.PowerSGDState(None, start_powerSGD_iter=0, **options)
    ...     buffer = plugrad.ones(64) * dist.get_rank()
    ...     bucket = dist.GradBucket(0, buffer, [buffer.view(8, 8)], True)
    ...     average = power.powerSGD_hook(state, bucket).wait()
    ...     return average.allclose(plugrad.full((64,), 0.5)), state.compression_stats()
    >>> dist.run_ranks(program, 2)[0]  # all rows are alike, so nothing is lost
    (True, (4.0, 64, 16))
    """
    group = get_default_group() if state.process_group is None else state.process_group
    buffer = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return average(group, buffer)
    before = _with_former_error(state, bucket.index(), buffer)
    matrices: list[Tensor] = []
    plain: list[Tensor] = []
    for gradient in bucket.gradients():
        rows = gradient.shape[0] if gradient.ndim else 1
        matrix = gradient.view(rows, -1) if gradient.numel() else gradient.view(rows, 0)
        (matrices if state._is_worth_it(matrix) else plain).append(matrix)
    state._log(bucket)
    together = None
    if plain:
        flat = plugrad.cat([matrix.reshape(-1) for matrix in plain])
        together = average(group, flat)
    approximated = _approximate(state, bucket.index(), matrices, group)

    def finish() -> Tensor:
        if together is not None:
            found, start = together.wait(), 0
            for matrix in plain:
                matrix.copy_(found[start : start + matrix.numel()].view(matrix.shape))
                start += matrix.numel()
        approximated()
        _keep_error(state, bucket.index(), before, buffer)
        state.maybe_increase_iter(bucket)
        return buffer

    return Future.found_by(finish)


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """`powerSGD_hook` that treats all gradients of a bucket as one square matrix, padded with
    zeros: faster, and less exact.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
    >>> def program():
    ...     options = {"use_error_feedback": False, "warm_start": False}
    ...     state = power.PowerSGDState(None, start_powerSGD_iter=0, **options)
    ...     bucket = dist.GradBucket(0, plugrad.ones(100) * dist.get_rank(), [], True)
    ...     average = power.batched_powerSGD_hook(state, bucket).wait()
    ...     return average.allclose(plugrad.full((100,), 0.5)), state.compression_stats()
    >>> dist.run_ranks(program, 2)[0]  # 100 elements are a matrix of 10 times 10
    (True, (5.0, 100, 20))
    """
    group = get_default_group() if state.process_group is None else state.process_group
    buffer = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return average(group, buffer)
    before = _with_former_error(state, bucket.index(), buffer)
    total = buffer.numel()
    side = math.ceil(math.sqrt(total))
    square = plugrad.zeros(side * side, dtype=buffer.dtype, device=buffer.device)
    square[:total] = buffer
    state.total_numel_before_compression += total
    state.total_numel_after_compression += 2 * side * min(side, state.matrix_approximation_rank)
    state._log(bucket)
    approximated = _approximate(state, bucket.index(), [square.view(side, side)], group)

    def finish() -> Tensor:
        approximated()
        buffer.copy_(square[:total])
        _keep_error(state, bucket.index(), before, buffer)
        state.maybe_increase_iter(bucket)
        return buffer

    return Future.found_by(finish)


def _with_former_error(state: PowerSGDState, index: int, buffer: Tensor) -> Tensor | None:
    """Add the previous error of compression; returns a copy of the result."""
    if not state.use_error_feedback:
        return None
    error = state.error_dict.get(index)
    if error is not None:
        buffer.add_(error)
    return buffer.clone()


def _keep_error(state: PowerSGDState, index: int, before: Tensor | None, found: Tensor) -> None:
    if before is not None:
        state.error_dict[index] = before - found


def _approximate(
    state: PowerSGDState, index: int, matrices: Sequence[Tensor], group: ProcessGroup
) -> Callable[[], None]:
    """Start to average matrices; returns a function that waits and writes the averages to them."""
    if not matrices:
        return lambda: None
    batches = _batches(matrices, state.batch_tensors_with_same_shape)
    stacked = [plugrad.stack(batch) for batch in batches]
    qs = _first_qs(state, index, stacked)
    ps = [batch @ q for batch, q in zip(stacked, qs, strict=True)]
    flat = _flat(ps)
    work = all_reduce(flat, group=group, async_op=True)
    assert work is not None

    def finish() -> None:
        work.wait()
        # The sum spans the same columns as the average.
        basis = [_orthogonal(p) for p in _like(flat, ps)]
        sums = _flat([b.mT @ p for b, p in zip(stacked, basis, strict=True)])
        averages = average(group, sums).wait()
        found = _like(averages, qs)
        for batch, p, q in zip(batches, basis, found, strict=True):
            for matrix, approximation in zip(batch, p @ q.mT, strict=True):
                matrix.copy_(approximation)
        if state.warm_start:
            state.q_memory_dict[index] = [q.clone() for q in found]

    return finish


def _batches(matrices: Sequence[Tensor], by_shape: bool) -> list[list[Tensor]]:
    """Each matrix on its own, or all of one shape together."""
    if not by_shape:
        return [[matrix] for matrix in matrices]
    found: dict[Any, list[Tensor]] = {}
    for matrix in matrices:
        found.setdefault(tuple(matrix.shape), []).append(matrix)
    return list(found.values())


def _first_qs(state: PowerSGDState, index: int, stacked: Sequence[Tensor]) -> list[Tensor]:
    """Initial orthogonal matrices, the same on all ranks."""
    kept = state.q_memory_dict.get(index)
    if kept is not None:
        return [_orthogonal(q) for q in kept]
    generator = plugrad.Generator().manual_seed(int(state.rng.randint(1_000_000_000)))
    found = []
    for batch in stacked:
        count, n, m = batch.shape
        rank = min(n, m, state.matrix_approximation_rank)
        q = plugrad.randn(count, m, rank, generator=generator, device="cpu")
        found.append(_orthogonal(q.to(batch.device, batch.dtype)))
    return found


def _orthogonal(batch: Tensor) -> Tensor:
    """Orthogonal columns with the same span."""
    wide = batch.to(plugrad.float32) if batch.element_size() < 4 else batch
    found: Tensor = plugrad.linalg.qr(wide)[0].to(batch.dtype)
    return found


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return plugrad.cat([tensor.reshape(-1) for tensor in tensors])


def _like(flat: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    """The parts of a tensor in the shapes of others."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return [part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]
