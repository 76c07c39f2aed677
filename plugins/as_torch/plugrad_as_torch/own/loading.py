"""`torch.utils.data.dataloader`: annotations of a loader's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["_collate_fn_t", "_worker_init_fn_t"]

_T = TypeVar("_T")

_collate_fn_t = Callable[[list[_T]], Any]
_worker_init_fn_t = Callable[[int], None]
