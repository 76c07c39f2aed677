"""`plugrad.distributed.pipelining`: a model in stages, each on its own rank. Microbatches follow
one another through the stages, so that all ranks work at the same time.

>>> import plugrad, plugrad.distributed as dist
>>> from plugrad import nn
>>> from plugrad.distributed.pipelining import PipelineStage, Schedule1F1B
>>> def program():
...     rank, size = dist.get_rank(), dist.get_world_size()
...     layer = nn.Linear(2, 2)
...     nn.init.eye_(layer.weight), nn.init.zeros_(layer.bias)
...     stage = PipelineStage(layer, rank, size, "cpu")
...     schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=nn.MSELoss())
...     x, target = plugrad.ones(8, 2), plugrad.zeros(8, 2)
...     if rank == 0:
...         schedule.step(x)
...     else:
...         losses = []
...         schedule.step(target=target, losses=losses)
...         assert [loss.item() for loss in losses] == [1.0] * 4
...     return layer.weight.grad.tolist()
>>> dist.run_ranks(program, 2)
[[[1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]]
"""

from __future__ import annotations

from plugrad_distributed.distributed.pipelining.microbatch import (
    TensorChunkSpec,
    merge_chunks,
    split_args_kwargs_into_chunks,
)
from plugrad_distributed.distributed.pipelining.orders import Action
from plugrad_distributed.distributed.pipelining.pipe import (
    Pipe,
    SplitPoint,
    pipe_split,
    pipeline,
)
from plugrad_distributed.distributed.pipelining.schedules import (
    PipelineScheduleMulti,
    PipelineScheduleSingle,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from plugrad_distributed.distributed.pipelining.stage import PipelineStage

__all__ = [
    "Action",
    "Pipe",
    "PipelineScheduleMulti",
    "PipelineScheduleSingle",
    "PipelineStage",
    "Schedule1F1B",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "SplitPoint",
    "TensorChunkSpec",
    "merge_chunks",
    "pipe_split",
    "pipeline",
    "split_args_kwargs_into_chunks",
]
