"""What DistributedDataParallel does on ranks that have run out of inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plugrad
from plugrad_distributed.distributed.algorithms.join import JoinHook
from plugrad_distributed.distributed.collectives import all_reduce
from plugrad_distributed.reduce_op import ReduceOp

if TYPE_CHECKING:
    from plugrad_distributed.data_parallel.distributed import DistributedDataParallel

__all__ = ["DDPJoinHook", "common_rank", "sum_over"]


def common_rank(model: DistributedDataParallel, candidate: bool) -> int:
    """The largest rank of the group among the candidates."""
    group = model.process_group
    found = plugrad.tensor([group.rank() if candidate else -1], device=model.device)
    all_reduce(found, ReduceOp.MAX, group)
    return int(found)


def sum_over(model: DistributedDataParallel, value: int) -> int:
    """The sum of a number over the ranks."""
    found = plugrad.tensor([value], device=model.device)
    all_reduce(found, ReduceOp.SUM, model.process_group)
    return int(found)


class DDPJoinHook(JoinHook):
    """Calls the collectives of an iteration in the same order as the other ranks."""

    def __init__(self, model: DistributedDataParallel) -> None:
        self.model = model

    def main_hook(self) -> None:
        model = self.model
        reducer = model.reducer
        if reducer is None:
            return
        reducer.rebuild()
        if model.will_sync_module_buffers():
            model._sync_buffers(common_rank(model, False))
        # The next steps of the other ranks depend on it.
        model.require_forward_param_sync = sum_over(model, 0) > 0
        if model.require_forward_param_sync:
            reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        model = self.model
        if model.process_group.size() > 1:
            root = common_rank(model, is_last_joiner)
            model._send_states(root, buffers=model.forward_sync_buffers)
