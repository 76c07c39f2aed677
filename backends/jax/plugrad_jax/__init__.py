"""The JAX backend of plugrad: `device="jax"`.

>>> import plugrad, plugrad_jax
>>> plugrad.ones(3, device=plugrad_jax.device("cpu")).sum().item()
3.0
"""

from __future__ import annotations

from plugrad_jax.arrays import from_jax, to_jax
from plugrad_jax.capture import CacheInfo, Captured, CaptureError, jit
from plugrad_jax.devices import device
from plugrad_jax.sharding import (
    initialize,
    replicate,
    shard,
    shard_parameters,
    sharding_of,
    unshard,
)

__all__ = [
    "CacheInfo",
    "CaptureError",
    "Captured",
    "device",
    "from_jax",
    "initialize",
    "jit",
    "replicate",
    "shard",
    "shard_parameters",
    "sharding_of",
    "to_jax",
    "unshard",
]
