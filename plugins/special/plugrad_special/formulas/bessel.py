"""Formulas, checks and decompositions of ops/bessel.yaml."""

from __future__ import annotations

import math

import plugrad
from plugrad import Tensor
from plugrad_special import special
from plugrad_special.formulas.gradients import Gradients, total
from plugrad_special.formulas.quotients import sin_quotient


def modified_bessel_i0(x: Tensor) -> Tensor:
    return special.i0(x)


def modified_bessel_i1(x: Tensor) -> Tensor:
    return special.i1(x)


def modified_bessel_k0(x: Tensor) -> Tensor:
    return special.k0(x)


def modified_bessel_k1(x: Tensor) -> Tensor:
    return special.k1(x)


def scaled_modified_bessel_k0(x: Tensor) -> Tensor:
    return special.k0e(x)


def scaled_modified_bessel_k1(x: Tensor) -> Tensor:
    return special.k1e(x)


def ive_backward(grad: Tensor, v: Tensor, z: Tensor, result: Tensor) -> Tensor:
    """The derivative of I_v(z) exp(-|x|), z = x + i y, which depends on the conjugate of z only
    through x."""
    holomorphic = (special.ive(v - 1, z) + special.ive(v + 1, z)) / 2
    if not z.is_complex():
        return grad * (holomorphic - z.sgn() * result)
    scaling = plugrad.real(z).sgn() * result / -2
    return grad * (holomorphic + scaling).conj() + grad.conj() * scaling


def check_order(n: int, x: Tensor) -> None:
    if n < 0:
        raise RuntimeError(f"the order n must not be negative, got {n}")


def spherical_jn_derivative(n: int, z: Tensor) -> Tensor:
    return (_before(special.spherical_jn, n, z) - _after(special.spherical_jn, n, z)) / (2 * n + 1)


def spherical_yn_derivative(n: int, z: Tensor) -> Tensor:
    return (_before(special.spherical_yn, n, z) - _after(special.spherical_yn, n, z)) / (2 * n + 1)


def spherical_in_derivative(n: int, z: Tensor) -> Tensor:
    return (_before(special.spherical_in, n, z) + _after(special.spherical_in, n, z)) / (2 * n + 1)


def spherical_kn_derivative(n: int, z: Tensor) -> Tensor:
    # DLMF 10.51.4 is about (-1)^n k_n.
    return (_before(special.spherical_kn, n, z) + _after(special.spherical_kn, n, z)) / -(2 * n + 1)


def _before(function: object, n: int, z: Tensor) -> Tensor | float:
    return n * function(n - 1, z) if n > 0 else 0.0  # type: ignore[operator]


def _after(function: object, n: int, z: Tensor) -> Tensor:
    return (n + 1) * function(n + 1, z)  # type: ignore[operator,no-any-return]


def spherical_bessel_j0(z: Tensor) -> Tensor:
    if z.is_complex():
        return sin_quotient(z)
    z = z if z.is_floating_point() else z.to(plugrad.get_default_dtype())
    infinite = z.isinf()
    return sin_quotient(z.masked_fill(infinite, 1.0)).masked_fill(infinite, 0.0)


def airy_ai(z: Tensor) -> Tensor:
    return special.airy(z).ai


def airy_backward(
    grads: Gradients, z: Tensor, ai: Tensor, aip: Tensor, bi: Tensor, bip: Tensor
) -> Tensor | None:
    return total(grads, lambda: aip, lambda: z * ai, lambda: bip, lambda: z * bi)


def struve_power(v: Tensor, x: Tensor) -> Tensor:
    """The extra term in the recurrences of both Struve functions: DLMF 11.4.23 to 11.4.26."""
    return (x / 2) ** v * special.rgamma(v + 1.5) / math.sqrt(math.pi)
