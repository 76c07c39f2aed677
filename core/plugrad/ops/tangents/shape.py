"""Tangents of sorted elements."""

from __future__ import annotations

# Interpreted: it is loaded when somebody uses forward mode.
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def taken_along(t: Tensor, dim: int, indices: Tensor) -> Any:
    """The tangents of the elements at `indices`."""
    return t if t.ndim == 0 else t.gather(dim, indices)
