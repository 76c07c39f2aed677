"""plugrad.utils.data._utils: the parts of DataLoader, in PyTorch's places."""

import importlib
from typing import Any, Final

from plugrad_nn.utils.data._utils import collate, fetch, pin_memory

# How many seconds to wait before checking that the other side is alive, and how many seconds a
# worker may finish its batch after a request to end.
MP_STATUS_CHECK_INTERVAL: Final = 5.0

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "fetch", "pin_memory"]


def __getattr__(name: str) -> Any:
    if name == "worker":  # the workers' module is loaded only if there are workers
        return importlib.import_module("plugrad_nn.utils.data._utils.worker")
    raise AttributeError(f"module 'plugrad.utils.data._utils' has no attribute {name!r}")
