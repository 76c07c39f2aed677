"""Tangents of determinants."""

from __future__ import annotations

# Interpreted: it is loaded when somebody uses forward mode.
from typing import TYPE_CHECKING, Any

from plugrad.ops.formulas.linear_systems import cofactors, inverse_if_regular

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def det_tangent(A_t: Tensor, A: Tensor, result: Tensor) -> Any:
    inverse = inverse_if_regular(A)
    if inverse is None:
        return (cofactors(A) * A_t).sum(dim=(-2, -1))
    return result * trace_of_product(inverse, A_t)


def trace_of_product(a: Tensor, b: Tensor) -> Any:
    """tr(a @ b), without the product."""
    return (a * b.transpose(-2, -1)).sum(dim=(-2, -1))
