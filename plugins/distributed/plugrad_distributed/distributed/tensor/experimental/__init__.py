"""`plugrad.distributed.tensor.experimental`: third-party rules, and functions on local parts."""

from __future__ import annotations

from plugrad_distributed.tensor.experimental.mapping import local_map
from plugrad_distributed.tensor.experimental.sharding_rules import register_sharding
from plugrad_distributed.tensor.kernels import implicit_replication

__all__ = ["implicit_replication", "local_map", "register_sharding"]
