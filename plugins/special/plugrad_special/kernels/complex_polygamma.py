"""Polygamma functions of complex numbers; SciPy has only the first, digamma."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
import scipy.special as sp

# Where the asymptotic series becomes accurate.
_FAR = 20.0
_BERNOULLI = sp.bernoulli(30)
# The largest order with factorials and powers that are floating point numbers.
_MOST = 60
_TERMS = 64


def complex_polygamma(n: int, z: Any) -> Any:
    """The n-th derivative of digamma, accurate to about 1e-12.

    Left of Re z = 1/2 it uses the reflection formula DLMF 5.15.6, else the recurrence DLMF 5.15.5
    up to the differentiated asymptotic series DLMF 5.15.8.
    """
    if n == 0:
        return sp.digamma(z)
    z = z.astype(np.complex128)
    if n > _MOST:
        return _of_large_order(n, z)
    left = z.real < 0.5
    right = _right(n, np.where(left, 1 - z, z))
    # psi_n(1 - z) + (-1)^(n + 1) psi_n(z) = (-1)^n pi d^n/dz^n cot(pi z)
    reflected = (-1) ** n * (right + _cotangent_derivative(n, z))
    return np.where(left, reflected, right)


def _right(n: int, z: Any) -> Any:
    total = np.zeros_like(z)
    for _ in range(int(_FAR) + n):
        total += (-1) ** (n + 1) * factorial(n) / z ** (n + 1)
        z = z + 1
    series = factorial(n - 1) / z**n + factorial(n) / (2 * z ** (n + 1))
    for k in range(2, len(_BERNOULLI), 2):
        series += _BERNOULLI[k] * factorial(k + n - 1) / (factorial(k) * z ** (k + n))
    return total + (-1) ** (n + 1) * series


def _of_large_order(n: int, z: Any) -> Any:
    """(-1)^(n + 1) n! times the sum of 1 / (z + k)^(n + 1), DLMF 5.15.1, by logarithms.

    Only the terms with z + k nearest to 0 matter, and for large z the rest, by the Euler-Maclaurin
    formula.
    """
    with np.errstate(all="ignore"):
        # Far from the poles the reflection formula has no other term.
        turned = (z.real < 0) & (np.abs(z.imag) > _TERMS)
        z = np.where(turned, 1 - z, z)
        nearest = np.maximum(0.0, np.round(-z.real))
        first = np.maximum(0.0, nearest - _TERMS)
        total = np.zeros_like(z)
        place = z + first
        for _ in range(2 * _TERMS):
            total += np.exp(sp.gammaln(n + 1.0) - (n + 1.0) * np.log(place))
            place = place + 1
        for order, part in ((0, 1.0), (1, 1 / 2), (2, 1 / 12)):
            power = np.exp(sp.gammaln(n + float(order)) - (n + float(order)) * np.log(place))
            total += part * power
        return total * np.where(turned | (n % 2 == 0), -1, 1)


def _cotangent_derivative(n: int, z: Any) -> Any:
    """(-1)^(n + 1) pi d^n/dz^n cot(pi z), a polynomial in c = cot(pi z): c' = -pi (1 + c^2)."""
    with np.errstate(all="ignore"):
        # exp(2 pi i z) or its reciprocal, whichever does not overflow.
        upper = z.imag >= 0
        e = np.exp(np.where(upper, 2j, -2j) * np.pi * z)
        cotangent = np.where(upper, -1j, 1j) * (1 + e) / (1 - e)
    polynomial = np.polynomial.Polynomial([0, 1])
    for _ in range(n):
        polynomial = polynomial.deriv() * np.polynomial.Polynomial([-1, 0, -1]) * np.pi
    return (-1) ** (n + 1) * np.pi * polynomial(cotangent)
