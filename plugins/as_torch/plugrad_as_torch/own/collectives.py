"""Constants of `torch.distributed` that programs name as defaults when they are imported."""

from __future__ import annotations

import enum

__all__ = ["BackwardPrefetch", "ReduceOp", "ShardingStrategy", "StateDictType"]


class ReduceOp(enum.Enum):
    """How processes combine their tensors."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class ShardingStrategy(enum.Enum):
    """What fully sharded modules shard across processes."""

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


class BackwardPrefetch(enum.Enum):
    """When fully sharded modules prefetch parameters during backward."""

    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


class StateDictType(enum.Enum):
    """What a state dict of a fully sharded module contains."""

    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()
