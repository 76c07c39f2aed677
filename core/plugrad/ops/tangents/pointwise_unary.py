"""Tangents of functions that are not holomorphic."""

from __future__ import annotations

# Interpreted: it is loaded when somebody uses forward mode.
from typing import TYPE_CHECKING, Any

from plugrad._generated import functions as F
from plugrad.ops.formulas.pointwise_unary import conjugate, zero_where

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def abs_tangent(t: Tensor, x: Tensor) -> Any:
    """The tangent's component along x."""
    if not x.dtype.is_complex:
        return t * x.sgn()
    return F.real(conjugate(x.sgn()) * t)


def angle_tangent(t: Tensor, x: Tensor) -> Any:
    """The tangent's component perpendicular to x, divided by the distance; zero for reals."""
    if not x.dtype.is_complex:
        return F.zeros_like(t)
    return zero_where(x == 0, F.imag(conjugate(x) * t) / x.abs() ** 2)
