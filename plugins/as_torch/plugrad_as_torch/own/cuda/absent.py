"""Blocks of `torch.cuda` for a machine without plugrad-cuda. Programs enter them even there, so
they do nothing until a missing device is requested."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Tensor

__all__ = ["device", "device_of"]


class device:
    """A block in which a GPU is the current one; none for a negative index.

    Raises:
        BackendNotFoundError: at the beginning of the block, since there is no such device.

    >>> with device(-1):
    ...     pass
    """

    def __init__(self, device: Any) -> None:
        index = device if isinstance(device, int) else plugrad.device(device).index
        self.idx = 0 if index is None else index

    def __enter__(self) -> None:
        if self.idx >= 0:
            plugrad.empty(0, device=f"cuda:{self.idx}")  # it says what is missing

    def __exit__(self, *error: object) -> None:
        return None


class device_of(device):
    """A block in which the GPU of a tensor is the current one; nothing for a tensor elsewhere.

    >>> import plugrad
    >>> with device_of(plugrad.ones(1)):
    ...     pass
    """

    def __init__(self, obj: Tensor) -> None:
        super().__init__(obj.get_device() if obj.device.type == "cuda" else -1)
