"""Derivatives of special functions."""

# mypy: disable-error-code="index, no-any-return"

from __future__ import annotations

# Interpreted: loaded on demand.
import math
from typing import TYPE_CHECKING, Final

from plugrad._generated import functions as F

if TYPE_CHECKING:
    from plugrad._generated.methods import TensorMethods as Tensor

# For the series below: the next term is 1e-18 of the sum.
_TERMS: Final = 9


def gamma_density(a: Tensor, x: Tensor) -> Tensor:
    """x^(a - 1) exp(-x) / gamma(a), DLMF 8.8.13."""
    return F.exp(F.xlogy(a - 1, x) - x - F.lgamma(a))


def erfinv_slope(x: Tensor) -> Tensor:
    """sqrt(pi) / 2 exp(erfinv(x)^2), DLMF 7.2.1.

    Of `x`, not of the result, which users often scale in place.
    """
    value = F.erfinv(x)
    return 0.886226925452758 * F.exp(value * value)


def i1_slope(x: Tensor, value: Tensor) -> Tensor:
    """i0(x) - i1(x) / x, DLMF 10.29.2; near 0, where that cancels, its series."""
    near = F.lt(F.abs(x), 1)
    small = F.where(near, x, 0)
    quarter = small * small / 4
    series = F.zeros_like(quarter)
    for k in range(_TERMS, -1, -1):
        term = (2 * k + 1) / (2 * math.factorial(k) * math.factorial(k + 1))
        series = series * quarter + term
    return F.where(near, series, F.i0(x) - value / F.where(near, 1, x))
