"""Tangents of pseudo-inverses."""

# Tensor dunders may return NotImplemented: Any.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

# Interpreted: it is loaded when somebody uses forward mode.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def pinv_tangent(t: Tensor, pinv: Tensor, A: Tensor) -> Any:
    """See `pinv_backward`."""
    turned, t_h = F.mH(pinv), F.mH(t)
    inside = -F.matmul(pinv, F.matmul(t, pinv))
    right = F.matmul(F.matmul(pinv, turned), t_h)
    behind = right - F.matmul(F.matmul(right, A), pinv)
    left = F.matmul(t_h, F.matmul(turned, pinv))
    before = left - F.matmul(pinv, F.matmul(A, left))
    return inside + behind + before
