"""Elementwise operators of three operands that are others under another name."""

# Operators with several overloads are typed Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def clip(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    return F.clamp(self, min, max)
