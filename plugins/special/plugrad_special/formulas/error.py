"""Formulas and decompositions of ops/error.yaml."""

from __future__ import annotations

import math
from collections.abc import Callable

import plugrad
from plugrad import Tensor
from plugrad_special import special
from plugrad_special.formulas.gradients import Gradients, total
from plugrad_special.formulas.quotients import RISING_HALF, polynomial

_ROOT_PI = math.sqrt(math.pi)
_TWO_BY_ROOT_PI = 2 / _ROOT_PI
# From here on the asymptotic series is accurate to double precision.
_FAR = 8.0
# From here on exp(-x^2) is 0.
_UNDERFLOW = 28.0


def erf(z: Tensor) -> Tensor:
    return special._erf_complex(z) if z.is_complex() else plugrad.erf(z)


def erfc(z: Tensor) -> Tensor:
    return special._erfc_complex(z) if z.is_complex() else plugrad.erfc(z)


def ndtr(x: Tensor) -> Tensor:
    return special.erfc(x * -math.sqrt(0.5)) / 2


def erfcx_derivative(z: Tensor, value: Tensor) -> Tensor:
    """2 z erfcx(z) - 2 / sqrt(pi), DLMF 7.10.1."""
    far = plugrad.real(z.detach()) > _FAR
    return _TWO_BY_ROOT_PI * _without_cancelling(far, z, -1, lambda: z * value * _ROOT_PI - 1)


def dawsn_derivative(z: Tensor, value: Tensor) -> Tensor:
    """1 - 2 z F(z), by DLMF 7.2.5."""
    squared = z.detach() * z.detach()
    far = plugrad.real(squared) > _FAR * _FAR
    return -_without_cancelling(far, z, 1, lambda: 2 * z * value - 1)


def wofz_derivative(z: Tensor, value: Tensor) -> Tensor:
    """2i / sqrt(pi) - 2 z w(z), DLMF 7.10.2."""
    place = z.detach()
    far = on_axis = place.abs() > _FAR
    if place.is_complex():
        far = far & (plugrad.imag(place) >= 0)
        on_axis = far & (plugrad.imag(place) == 0)
    found = _without_cancelling(far, z, 1, lambda: z * value * (-1j * _ROOT_PI) - 1)
    # On the real axis Re w(z) = exp(-z^2), which the series does not contain.
    x = plugrad.where(on_axis & (place.abs() < _UNDERFLOW), z, plugrad.zeros_like(z))
    return -1j * _TWO_BY_ROOT_PI * found - 2 * x * (-x * x).exp()


def _without_cancelling(
    far: Tensor, z: Tensor, sign: int, difference: Callable[[], Tensor]
) -> Tensor:
    """`difference()` for moderate z. Far out, where only rounding errors would remain of it, its
    asymptotic series DLMF 7.12.1: the sum of (1/2)_m (sign / z^2)^m over m > 0."""
    inverse = sign / plugrad.where(far, z, plugrad.full_like(z, _FAR)).square()
    series = inverse * polynomial(inverse, RISING_HALF)
    near = difference()
    return plugrad.where(far, series.to(near.dtype), near)


def voigt_profile_backward(
    grad: Tensor, x: Tensor, sigma: Tensor, gamma: Tensor, result: Tensor, mask: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    """Through the derivative of w, DLMF 7.10.2."""
    scale = sigma * math.sqrt(2)
    x, gamma = plugrad.broadcast_tensors(x, gamma)
    z = plugrad.complex(x, gamma) / scale
    slope = wofz_derivative(z, special.wofz(z)) / (scale * sigma)
    slope = slope / math.sqrt(2 * math.pi)
    by_sigma = -result / sigma - plugrad.real(slope * z) * math.sqrt(2) if mask[1] else None
    return (
        grad * plugrad.real(slope) if mask[0] else None,
        None if by_sigma is None else grad * by_sigma,
        grad * -plugrad.imag(slope) if mask[2] else None,
    )


def fresnel_backward(grads: Gradients, z: Tensor) -> Tensor | None:
    angle = z * z * (math.pi / 2)
    return total(grads, lambda: angle.sin(), lambda: angle.cos())
