"""`torch.backends.mha`: PyTorch's fast path for attention layers, which plugrad does not have."""

from __future__ import annotations

from typing import Final

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_kept: Final = {"enabled": True}


def get_fastpath_enabled() -> bool:
    """The argument of `set_fastpath_enabled`; True at first."""
    return _kept["enabled"]


def set_fastpath_enabled(value: bool) -> None:
    """Store whether layers may take the fast path; plugrad's layers have only one path."""
    _kept["enabled"] = value
