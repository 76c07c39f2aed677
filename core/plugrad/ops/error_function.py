"""Coefficients of the rational functions that approximate the error function in float64.

Polynomials P and Q are given from the highest power down; errors are below 1e-15. Backends import
them from `plugrad.plugins.error_function`.

Source: W. J. Cody, Rational Chebyshev Approximations for the Error Function, Mathematics of
Computation 23, 1969.
"""

from __future__ import annotations

# Interpreted: it is a table.
from typing import Final

NEAR_LIMIT: Final = 0.46875
# Up to NEAR_LIMIT: erf(x) = x * P(x^2) / Q(x^2).
NEAR_P: Final[tuple[float, ...]] = (
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
NEAR_Q: Final[tuple[float, ...]] = (
    1.0,
    2.36012909523441209e1,
    2.44024637934444173e2,
    1.28261652607737228e3,
    2.84423683343917062e3,
)
# From there up to 4: erfc(x) = exp(-x^2) * P(x) / Q(x).
MIDDLE_P: Final[tuple[float, ...]] = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
MIDDLE_Q: Final[tuple[float, ...]] = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)
# Farther, with z = 1 / x^2: erfc(x) = exp(-x^2) / x * (1 / sqrt(pi) - z * P(z) / Q(z)).
FAR_P: Final[tuple[float, ...]] = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
FAR_Q: Final[tuple[float, ...]] = (
    1.0,
    2.56852019228982242e0,
    1.87295284992346047e0,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)
