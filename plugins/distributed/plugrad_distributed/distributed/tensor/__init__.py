"""`plugrad.distributed.tensor`: tensors distributed over a mesh of ranks, under the names of
`torch.distributed.tensor`."""

from __future__ import annotations

from plugrad_distributed.distributed.device_mesh import DeviceMesh, init_device_mesh
from plugrad_distributed.tensor import registration
from plugrad_distributed.tensor.dtensor import DTensor
from plugrad_distributed.tensor.functions import (
    distribute_module,
    distribute_tensor,
    empty,
    full,
    ones,
    rand,
    randn,
    zeros,
)
from plugrad_distributed.tensor.placement import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "init_device_mesh",
    "ones",
    "rand",
    "randn",
    "zeros",
]

# Kept as long as the module, because the rules are removed with it.
_library = registration.register_rules()
