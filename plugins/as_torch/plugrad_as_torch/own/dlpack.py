"""`torch.utils.dlpack`: tensors that share memory with other libraries."""

from __future__ import annotations

from typing import Any

from plugrad import Tensor, from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """The capsule that `from_dlpack` functions of other libraries take."""
    return tensor.__dlpack__()
