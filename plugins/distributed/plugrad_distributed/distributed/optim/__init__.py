"""`plugrad.distributed.optim`: optimizers that divide their state among ranks."""

from __future__ import annotations

from plugrad_distributed.distributed.optim.post_localSGD_optimizer import PostLocalSGDOptimizer
from plugrad_distributed.distributed.optim.zero_redundancy_optimizer import (
    ZeroRedundancyOptimizer,
)

__all__ = ["PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]
