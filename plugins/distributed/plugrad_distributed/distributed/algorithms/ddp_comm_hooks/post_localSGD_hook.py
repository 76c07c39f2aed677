"""Post-local SGD: gradients are averaged over all ranks at first, and later only over small groups,
such as the ranks of a machine, while parameters are averaged over all ranks once in some steps."""

from __future__ import annotations

from plugrad import Tensor
from plugrad_distributed.data_parallel.buckets import GradBucket
from plugrad_distributed.distributed.algorithms.ddp_comm_hooks.default_hooks import average
from plugrad_distributed.distributed.starting import new_subgroups
from plugrad_distributed.futures import Future
from plugrad_distributed.groups.process_group import ProcessGroup

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """The state of `post_localSGD_hook`.

    Args:
        process_group: the ranks over which gradients are averaged at first; all by default.
        subgroup: those over which they are averaged later; by default those of the same machine.
        start_localSGD_iter: after how many iterations.
        post_local_gradient_allreduce: whether they are averaged over the subgroup then; otherwise
            each rank uses its own.

    Attributes:
        iter: how many iterations there have been at first, up to `start_localSGD_iter`.
    """

    __slots__ = (
        "iter",
        "post_local_gradient_allreduce",
        "process_group",
        "start_localSGD_iter",
        "subgroup",
    )

    def __init__(
        self,
        process_group: ProcessGroup | None,
        subgroup: ProcessGroup | None,
        start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        self.process_group = process_group
        self.subgroup = subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count the iteration, with its last bucket."""
        if bucket.is_last():
            self.iter += 1


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Average gradients over all ranks at first, and later over those of a subgroup. Use it with
    `plugrad.distributed.optim.PostLocalSGDOptimizer`, whose averager has as many steps of warm-up
    as `start_localSGD_iter`.

    Source: Lin et al., "Don't use large mini-batches, use local SGD", 2020.

    >>> import plugrad, plugrad.distributed as dist
    >>> from plugrad.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as post
    >>> def program():
    ...     net = plugrad.nn.parallel.DistributedDataParallel(plugrad.nn.Linear(1, 1, bias=False))
    ...     own, _ = dist.new_subgroups(1)
    ...     state = post.PostLocalSGDState(None, own, start_localSGD_iter=1)
    ...     net.register_comm_hook(state, post.post_localSGD_hook)
    ...     found = []
    ...     for _ in range(2):
    ...         net.zero_grad()
    ...         net(plugrad.ones(1, 1) * dist.get_rank()).sum().backward()
    ...         found.append(net.module.weight.grad.item())
    ...     return found
    >>> dist.run_ranks(program, 2)
    [[0.5, 0.0], [0.5, 1.0]]
    """
    gradients = bucket.buffer()
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return average(state.process_group, gradients)
    if not state.post_local_gradient_allreduce:
        future: Future[Tensor] = Future()
        future.set_result(gradients)
        return future
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return average(state.subgroup, gradients)
