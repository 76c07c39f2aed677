"""pin_memory: copies the tensors of a batch to page-locked memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_nn.utils.data._utils.containers import like_mapping, like_sequence


def can_pin() -> bool:
    """Whether there is a device that reads page-locked memory."""
    try:
        plugrad.empty(1, device="cpu").pin_memory()
    except RuntimeError:
        return False
    return True


def pin_memory(data: Any, device: Any = None) -> Any:
    """The batch with its tensors pinned, also inside mappings, tuples and lists; other objects with
    a method `pin_memory` have it called."""
    if isinstance(data, Tensor):
        return data.pin_memory()
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, str | bytes):
        return data
    if isinstance(data, Mapping):
        pinned = {key: pin_memory(value, device) for key, value in data.items()}
        return like_mapping(data, pinned)
    if isinstance(data, tuple):
        values = [pin_memory(value, device) for value in data]
        return type(data)(*values) if hasattr(data, "_fields") else values
    if isinstance(data, Sequence):
        return like_sequence(data, [pin_memory(value, device) for value in data])
    return data
