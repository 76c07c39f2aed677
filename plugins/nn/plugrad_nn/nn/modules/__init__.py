"""Families of layers, each loaded at its first use; `plugrad.nn` has all of their classes."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    # PyTorch's programs find every class here too.
    from plugrad_nn import nn

    if name in nn.__all__:
        return getattr(nn, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
