"""Derivatives of special functions."""

# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
from typing import TYPE_CHECKING

from plugrad._generated import functions as F

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor


def gamma_density(a: Tensor, x: Tensor) -> Tensor:
    """x^(a - 1) exp(-x) / gamma(a), DLMF 8.8.13."""
    return F.exp(F.xlogy(a - 1, x) - x - F.lgamma(a))


def i1_slope(x: Tensor, value: Tensor) -> Tensor:
    """i0(x) - i1(x) / x, DLMF 10.29.2, which is 1 / 2 at 0."""
    near = F.lt(F.abs(x), 1e-7)
    return F.where(near, 0.5 + x * x * 0.1875, F.i0(x) - value / F.where(near, 1, x))
