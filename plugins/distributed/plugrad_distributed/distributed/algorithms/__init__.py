"""`plugrad.distributed.algorithms`: uneven inputs (`join`) and communication hooks
(`ddp_comm_hooks`)."""

from __future__ import annotations

from plugrad_distributed.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
