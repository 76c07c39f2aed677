"""`plugrad.distributed.tensor.placement_types`, under the name of PyTorch's module."""

from __future__ import annotations

from plugrad_distributed.tensor.placement import Partial, Placement, Replicate, Shard

__all__ = ["Partial", "Placement", "Replicate", "Shard"]
