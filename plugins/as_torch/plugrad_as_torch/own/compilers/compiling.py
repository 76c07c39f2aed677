"""`torch.compile`, with PyTorch's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plugrad

__all__ = ["compile"]


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """`plugrad.compile` for functions; modules are returned unchanged. PyTorch's options are
    accepted and ignored."""
    if model is None:
        return compile
    if disable or hasattr(model, "named_parameters"):
        return model
    return plugrad.compile(model)
