"""A hook without communication, to measure the cost of communication."""

from __future__ import annotations

from typing import Any

from plugrad import Tensor
from plugrad_distributed.data_parallel.buckets import GradBucket
from plugrad_distributed.futures import Future

__all__ = ["noop_hook"]


def noop_hook(_: Any, bucket: GradBucket) -> Future[Tensor]:
    """The gradients of this rank, unchanged: the ranks' models drift apart.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
    >>> def program():
    ...     bucket = dist.GradBucket(0, plugrad.ones(2) * dist.get_rank(), [], True)
    ...     return noop_hook(None, bucket).wait()
    >>> dist.run_ranks(program, 2)
    [tensor([0., 0.]), tensor([1., 1.])]
    """
    future: Future[Tensor] = Future()
    future.set_result(bucket.buffer())
    return future
