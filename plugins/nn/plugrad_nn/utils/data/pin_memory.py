"""pin_memory: a batch whose tensors are in page-locked memory."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import plugrad
from plugrad import Tensor


def can_pin() -> bool:
    """Whether there is a device that reads page-locked memory; warns if there is none."""
    try:
        plugrad.empty(1, device="cpu").pin_memory()
    except RuntimeError:
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned "
            "memory won't be used.",
            stacklevel=3,
        )
        return False
    return True


def pin_memory(batch: Any) -> Any:
    """The batch with its tensors pinned; goes into mappings, tuples and lists, and calls the
    method `pin_memory` of other objects that have one."""
    if isinstance(batch, Tensor):
        return batch.pin_memory()
    if isinstance(batch, str | bytes):
        return batch
    if isinstance(batch, Mapping):
        return {key: pin_memory(value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(pin_memory, batch))
    if isinstance(batch, tuple | list):
        return type(batch)(map(pin_memory, batch))
    if isinstance(batch, Sequence):
        return [pin_memory(value) for value in batch]
    return batch.pin_memory() if hasattr(batch, "pin_memory") else batch
