"""Collectives that write to their arguments, with the names and arguments of `torch.distributed`.
They are not differentiable; `plugrad.distributed.nn.functional` has differentiable ones."""

from __future__ import annotations

from plugrad_distributed.distributed.collectives.barriers import barrier, monitored_barrier
from plugrad_distributed.distributed.collectives.copies import (
    all_gather,
    all_gather_into_tensor,
    broadcast,
    gather,
    scatter,
)
from plugrad_distributed.distributed.collectives.exchanges import all_to_all, all_to_all_single
from plugrad_distributed.distributed.collectives.reductions import (
    all_reduce,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
)

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
]
