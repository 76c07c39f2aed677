"""How many operators may run in parallel: stored, and returned on request.

`plugrad.set_num_threads` sets how many threads one operator may use.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["get_num_interop_threads", "set_num_interop_threads"]

_kept = {"interop": os.cpu_count() or 1}


def get_num_interop_threads() -> int:
    """How many operators may run in parallel, as set; plugrad's engine has one thread per
    device."""
    return _kept["interop"]


def set_num_interop_threads(int: int) -> None:
    """Accepted and stored; see `get_num_interop_threads`.

    Raises:
        RuntimeError: it is not an integer, or below 1.
    """
    given: Any = int
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise RuntimeError(
            f"set_num_interop_threads expects an int, but got {type(given).__name__}"
        )
    if given < 1:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _kept["interop"] = given
