"""Hooks that average gradients, in their own dtype or a narrower one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributed.data_parallel.buckets import GradBucket
from plugrad_distributed.distributed.collectives import all_reduce
from plugrad_distributed.distributed.queries import get_default_group
from plugrad_distributed.futures import Future
from plugrad_distributed.groups.process_group import ProcessGroup

__all__ = [
    "allreduce_hook",
    "average",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

Hook = Callable[[Any, GradBucket], Future[Tensor]]


def average(process_group: ProcessGroup | None, tensor: Tensor) -> Future[Tensor]:
    """The future of the average of a tensor over the ranks, in place.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.ddp_comm_hooks.default_hooks import average
    >>> def program():
    ...     return average(None, plugrad.ones(2) * dist.get_rank()).wait()
    >>> dist.run_ranks(program, 2)[0]
    tensor([0.5000, 0.5000])
    """
    group = get_default_group() if process_group is None else process_group
    # Divide before the sum, which then cannot overflow.
    tensor.div_(group.size())
    work = all_reduce(tensor, group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """The average over the ranks, which is also the default without a hook.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
    >>> def program():
    ...     bucket = dist.GradBucket(0, plugrad.ones(2) * dist.get_rank(), [], True)
    ...     return allreduce_hook(None, bucket).wait()
    >>> dist.run_ranks(program, 2)[0]
    tensor([0.5000, 0.5000])
    """
    return average(process_group, bucket.buffer())


def _compressed(
    dtype: plugrad.dtype, process_group: ProcessGroup | None, bucket: GradBucket
) -> Future[Tensor]:
    buffer = bucket.buffer()

    def decompress(done: Future[Tensor]) -> Tensor:
        return buffer.copy_(done.value())

    return average(process_group, buffer.to(dtype)).then(decompress)


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """The average over the ranks, communicated as float16.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
    >>> def program():
    ...     bucket = dist.GradBucket(0, plugrad.tensor([1.0, 1e-9]) * dist.get_rank(), [], True)
    ...     return fp16_compress_hook(None, bucket).wait()
    >>> dist.run_ranks(program, 2)[0]
    tensor([0.5000, 0.0000])
    """
    return _compressed(plugrad.float16, process_group, bucket)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """The average over the ranks, communicated as bfloat16.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
    >>> def program():
    ...     bucket = dist.GradBucket(0, plugrad.tensor([1.0, 2.0]) * dist.get_rank(), [], True)
    ...     return bf16_compress_hook(None, bucket).wait()
    >>> dist.run_ranks(program, 2)[0]
    tensor([0.5000, 1.0000])
    """
    return _compressed(plugrad.bfloat16, process_group, bucket)


def _wrapped(hook: Hook, dtype: plugrad.dtype) -> Hook:
    def wrapper(hook_state: Any, bucket: GradBucket) -> Future[Tensor]:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        return hook(hook_state, bucket).then(lambda done: buffer.copy_(done.value()))

    return wrapper


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that passes the gradients to another hook as float16, and casts its result back.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.ddp_comm_hooks import default_hooks
    >>> def show_dtype(state, bucket):
    ...     print(bucket.buffer().dtype)
    ...     return default_hooks.allreduce_hook(state, bucket)
    >>> def program():
    ...     bucket = dist.GradBucket(0, plugrad.ones(2), [], True)
    ...     return default_hooks.fp16_compress_wrapper(show_dtype)(None, bucket).wait()
    >>> dist.run_ranks(program, 1)
    plugrad.float16
    [tensor([1., 1.])]
    """
    return _wrapped(hook, plugrad.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that passes the gradients to another hook as bfloat16, and casts its result back.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.ddp_comm_hooks import default_hooks
    >>> def show_dtype(state, bucket):
    ...     print(bucket.buffer().dtype)
    ...     return default_hooks.allreduce_hook(state, bucket)
    >>> def program():
    ...     bucket = dist.GradBucket(0, plugrad.ones(2), [], True)
    ...     return default_hooks.bf16_compress_wrapper(show_dtype)(None, bucket).wait()
    >>> dist.run_ranks(program, 1)
    plugrad.bfloat16
    [tensor([1., 1.])]
    """
    return _wrapped(hook, plugrad.bfloat16)
