"""`plugrad.distributed.nn`: differentiable collectives with the arguments of
`torch.distributed.nn.functional`."""

from __future__ import annotations

from plugrad_distributed.distributed.nn import functional
from plugrad_distributed.distributed.nn.functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "functional",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]
