"""plugrad.utils.data._utils: the parts that DataLoader is made of, where PyTorch has them."""

import importlib
from typing import Any, Final

from plugrad_nn.utils.data._utils import collate, fetch, pin_memory

# For how many seconds to wait before looking whether the other side still lives, and for how long
# a worker may go on with its batch when it was asked to end.
MP_STATUS_CHECK_INTERVAL: Final = 5.0

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "fetch", "pin_memory"]


def __getattr__(name: str) -> Any:
    if name == "worker":  # what workers need is loaded when there are any
        return importlib.import_module("plugrad_nn.utils.data._utils.worker")
    raise AttributeError(f"module 'plugrad.utils.data._utils' has no attribute {name!r}")
