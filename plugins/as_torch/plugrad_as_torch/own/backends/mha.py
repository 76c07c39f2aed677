"""`torch.backends.mha`: PyTorch's fast path of attention layers, of which plugrad has none."""

from __future__ import annotations

from typing import Final

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_kept: Final = {"enabled": True}


def get_fastpath_enabled() -> bool:
    """The argument of `set_fastpath_enabled`; True at first."""
    return _kept["enabled"]


def set_fastpath_enabled(value: bool) -> None:
    """Keep whether layers may take the fast path; all of plugrad's take the same."""
    _kept["enabled"] = value
