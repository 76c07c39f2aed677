"""Tangents of determinants."""

from __future__ import annotations

# Interpreted: it is loaded when somebody uses forward mode.
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def trace_of_product(a: Tensor, b: Tensor) -> Any:
    """tr(a @ b), without the product."""
    return (a * b.transpose(-2, -1)).sum(dim=(-2, -1))
