"""Functions with a removable singularity at 0, differentiable there to high order.

Near 0 they are polynomials, so neither values nor derivatives divide by 0 or cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import plugrad
from plugrad import Tensor
from plugrad_special import special

Function = Callable[[Tensor], Tensor]


def _joined(x: Tensor, radius: float, near: Function, far: Function) -> Tensor:
    """`near(x)` where |x| < radius, else `far(x)`. Each gets only arguments from its own region."""
    small = x.detach().abs() < radius
    zero, one = plugrad.zeros_like(x), plugrad.ones_like(x)
    return plugrad.where(
        small, near(plugrad.where(small, x, zero)), far(plugrad.where(small, one, x))
    )


def polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """By Horner's rule; the constant term comes first."""
    result = plugrad.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def _ratios(first: float, ratio: Callable[[int], float], count: int) -> list[float]:
    """Coefficients of a hypergeometric series: the first, and the ratio of the k-th to the next."""
    found = [first]
    for k in range(count):
        found.append(found[-1] * ratio(k))
    return found


SINE = _ratios(1.0, lambda k: -1 / ((2 * k + 2) * (2 * k + 3)), 9)
HYPERBOLIC_SINE = [abs(c) for c in SINE]
# J1(x) / x and I1(x) / x, in powers of x^2: DLMF 10.2.2 and 10.25.2.
BESSEL = _ratios(0.5, lambda k: -1 / (4 * (k + 1) * (k + 2)), 9)
MODIFIED_BESSEL = [abs(c) for c in BESSEL]
# (1/2)_1, (1/2)_2, ...: Pochhammer's symbol.
RISING_HALF = _ratios(0.5, lambda k: k + 1.5, 20)
# log(1 + u) / u, and its derivative.
LOGARITHM = [(-1.0) ** k / (k + 1) for k in range(18)]
LOGARITHM_DERIVATIVE = [(-1.0) ** k * k / (k + 1) for k in range(1, 20)]


def sin_quotient(z: Tensor) -> Tensor:
    """sin(z) / z."""
    return _joined(z, 1.0, lambda x: polynomial(x * x, SINE), lambda x: x.sin() / x)


def sinh_quotient(z: Tensor) -> Tensor:
    """sinh(z) / z."""
    return _joined(z, 1.0, lambda x: polynomial(x * x, HYPERBOLIC_SINE), lambda x: x.sinh() / x)


def log_quotient(z: Tensor) -> Tensor:
    """log(z) / (z - 1)."""
    near = (z.detach() - 1).abs() < 0.1
    one = plugrad.ones_like(z)
    t = plugrad.where(near, one + 1, z)
    return plugrad.where(
        near, polynomial(plugrad.where(near, z, one) - 1, LOGARITHM), t.log() / (t - 1)
    )


def log1p_quotient_derivative(u: Tensor) -> Tensor:
    """The derivative of log(1 + u) / u."""
    return _joined(
        u,
        0.1,
        lambda x: polynomial(x, LOGARITHM_DERIVATIVE),
        lambda x: (1 / (1 + x) - x.log1p() / x) / x,
    )


def bessel_j1_quotient(x: Tensor) -> Tensor:
    """J1(x) / x."""
    return _joined(x, 1.0, lambda t: polynomial(t * t, BESSEL), lambda t: special.bessel_j1(t) / t)


def i1e_quotient(x: Tensor) -> Tensor:
    """exp(-|x|) I1(x) / x."""
    return _joined(
        x,
        1.0,
        lambda t: polynomial(t * t, MODIFIED_BESSEL) * (-t.abs()).exp(),
        lambda t: special.i1e(t) / t,
    )
