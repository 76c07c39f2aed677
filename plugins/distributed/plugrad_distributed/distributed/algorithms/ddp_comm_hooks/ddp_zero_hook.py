"""Hooks that update parameters during backward, with a `ZeroRedundancyOptimizer` that was made with
`overlap_with_ddp=True`."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from plugrad import Tensor
from plugrad_distributed.data_parallel.buckets import GradBucket
from plugrad_distributed.data_parallel.distributed import DistributedDataParallel
from plugrad_distributed.data_parallel.overlapping import OverlappingSteps
from plugrad_distributed.data_parallel.reducer import Reducer, reduced
from plugrad_distributed.distributed.optim.zero_redundancy_optimizer import (
    ZeroRedundancyOptimizer,
)
from plugrad_distributed.futures import Future

__all__ = ["hook_with_zero_step", "hook_with_zero_step_interleaved"]

Hook = Callable[[Any, GradBucket], Future[Any]]


def hook_with_zero_step(
    hook: Hook,
    ddp: DistributedDataParallel,
    zero: ZeroRedundancyOptimizer,
    shard_buckets: bool = False,
) -> Callable[[Any, GradBucket], Future[Tensor]]:
    """A hook that communicates as another one does, and updates all parameters when the last bucket
    is complete: steps overlap with the reductions of later buckets. Choose it for slow networks.

    The first two iterations update nothing, because they show which gradients share a bucket. All
    later ones update the parameters as `zero.step()` would; `zero.step()` itself does nothing.

    Args:
        hook: the hook that averages gradients.
        ddp: the module; register the result with its `register_comm_hook`.
        zero: the optimizer of its parameters.
        shard_buckets: divide buckets among ranks, which then have about equal parts; otherwise each
            bucket belongs to one rank.

    Raises:
        ValueError: `zero` was made without `overlap_with_ddp=True` or for other ranks, or `ddp`
            with `find_unused_parameters=True`, because its buckets do not settle.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import hook_with_zero_step
    >>> from plugrad.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
    >>> from plugrad.distributed.optim import ZeroRedundancyOptimizer
    >>> def program():
    ...     layer = plugrad.nn.Linear(1, 1, bias=False)
    ...     plugrad.nn.init.ones_(layer.weight)
    ...     net = plugrad.nn.parallel.DistributedDataParallel(layer)
    ...     zero = ZeroRedundancyOptimizer(
    ...         net.parameters(), plugrad.optim.SGD, overlap_with_ddp=True, lr=0.25
    ...     )
    ...     net.register_comm_hook(None, hook_with_zero_step(allreduce_hook, net, zero))
    ...     weights = []
    ...     for _ in range(4):
    ...         zero.zero_grad()
    ...         net(plugrad.ones(1, 1)).sum().backward()
    ...         weights.append(layer.weight.item())
    ...     return weights
    >>> dist.run_ranks(program, 2)[1]
    [1.0, 1.0, 0.75, 0.5]
    """
    steps = _steps(ddp, zero, shard_buckets)
    reference = weakref.ref(ddp)
    waiting: list[tuple[GradBucket, Future[Any]]] = []

    def hook_with_zero(state: Any, bucket: GradBucket) -> Future[Tensor]:
        future = hook(state, bucket)
        reducer = _reducer(reference)
        if not steps.begins(bucket, reducer.rebuilt):
            return future
        if bucket.index() == 0:
            # A backward pass that failed may have left some.
            waiting.clear()
        waiting.append((bucket, future))
        if bucket.is_last():
            for each, arriving in waiting:
                steps.step(each, reduced(arriving, each.buffer()), reducer.unused_anywhere())
            waiting.clear()
        return future

    return hook_with_zero


def hook_with_zero_step_interleaved(
    hook: Hook,
    ddp: DistributedDataParallel,
    zero: ZeroRedundancyOptimizer,
    shard_buckets: bool = False,
) -> Callable[[Any, GradBucket], Future[Tensor]]:
    """As `hook_with_zero_step`, but with each bucket the parameters of the previous bucket are
    updated, while backward is still running. Choose it for fast networks: backward waits for a
    reduction that takes longer than the gradients of the next bucket.

    Args:
        hook, ddp, zero, shard_buckets: see `hook_with_zero_step`.

    Raises:
        ValueError: see `hook_with_zero_step`.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.ddp_comm_hooks import ddp_zero_hook, default_hooks
    >>> from plugrad.distributed.optim import ZeroRedundancyOptimizer
    >>> def program():
    ...     layer = plugrad.nn.Linear(1, 1, bias=False)
    ...     plugrad.nn.init.ones_(layer.weight)
    ...     net = plugrad.nn.parallel.DistributedDataParallel(layer)
    ...     zero = ZeroRedundancyOptimizer(
    ...         net.parameters(), plugrad.optim.SGD, overlap_with_ddp=True, lr=0.25
    ...     )
    ...     hook = default_hooks.allreduce_hook
    ...     net.register_comm_hook(
    ...         None, ddp_zero_hook.hook_with_zero_step_interleaved(hook, net, zero)
    ...     )
    ...     for _ in range(3):
    ...         zero.zero_grad()
    ...         net(plugrad.ones(1, 1)).sum().backward()
    ...     return layer.weight.item()
    >>> dist.run_ranks(program, 2)
    [0.75, 0.75]
    """
    steps = _steps(ddp, zero, shard_buckets)
    reference = weakref.ref(ddp)
    waiting: list[Future[Tensor]] = []

    def hook_with_zero_interleaved(state: Any, bucket: GradBucket) -> Future[Tensor]:
        future = hook(state, bucket)
        reducer = _reducer(reference)
        if not steps.begins(bucket, reducer.rebuilt):
            return future

        def step() -> Tensor:
            found = reduced(future, bucket.buffer())
            steps.step(bucket, found, reducer.unused_anywhere())
            return found

        # Not `future.then`, which could run early on some ranks only: steps communicate.
        stepping = Future.found_by(step)
        if bucket.index() > 0:
            waiting[0].wait()
        waiting[:] = [stepping]
        return stepping

    return hook_with_zero_interleaved


def _steps(
    ddp: DistributedDataParallel, zero: ZeroRedundancyOptimizer, shard_buckets: bool
) -> OverlappingSteps:
    """The steps of an optimizer, after a check that they can run in the backward of a module."""
    if zero.overlapping is None:
        raise ValueError(
            "ZeroRedundancyOptimizer must be constructed with `overlap_with_ddp=True` to use this "
            "hook properly"
        )
    if ddp.find_unused_parameters and not ddp.static_graph:
        raise ValueError(
            "DistributedDataParallel must be made without find_unused_parameters=True to use this "
            "hook: parameters without gradients in some iterations would be updated. For the same "
            "unused parameters in all iterations, static_graph=True can be used"
        )
    if zero.process_group.ranks != ddp.process_group.ranks:
        raise ValueError(
            "ZeroRedundancyOptimizer and DistributedDataParallel must have the same process group, "
            f"got ranks {list(zero.process_group.ranks)} and {list(ddp.process_group.ranks)}"
        )
    zero.overlapping.shard_buckets = shard_buckets
    return zero.overlapping


def _reducer(reference: weakref.ref[DistributedDataParallel]) -> Reducer:
    """The reducer of a module that is in its backward pass."""
    ddp = reference()
    if ddp is None or ddp.reducer is None:
        raise RuntimeError(
            "hook_with_zero_step(): the DistributedDataParallel module that it was made for is gone"
        )
    return ddp.reducer
