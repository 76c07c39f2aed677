"""`plugrad.distributed.fsdp`: fully sharded training, under the names of
`torch.distributed.fsdp`."""

from __future__ import annotations

# Sharded parameters are DTensors: this import registers their operators.
import plugrad_distributed.distributed.tensor  # noqa: F401
from plugrad_distributed.fully_sharded.handles import UnshardHandle
from plugrad_distributed.fully_sharded.module import (
    FSDPModule,
    register_fsdp_forward_method,
)
from plugrad_distributed.fully_sharded.policies import (
    CPUOffloadPolicy,
    MixedPrecisionPolicy,
    OffloadPolicy,
)
from plugrad_distributed.fully_sharded.sharding import fully_shard

__all__ = [
    "CPUOffloadPolicy",
    "FSDPModule",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "UnshardHandle",
    "fully_shard",
    "register_fsdp_forward_method",
]
