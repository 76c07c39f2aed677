"""Tensors on arrays that are sharded over a mesh of devices: eager operators and captured steps."""

from __future__ import annotations

from plugrad_jax.sharding.hosts import initialize
from plugrad_jax.sharding.modules import shard_parameters
from plugrad_jax.sharding.tensors import replicate, shard, sharding_of, unshard

__all__ = ["initialize", "replicate", "shard", "shard_parameters", "sharding_of", "unshard"]
