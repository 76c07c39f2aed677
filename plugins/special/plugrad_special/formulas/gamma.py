"""Formulas, checks and decompositions of ops/gamma.yaml."""

from __future__ import annotations

import math

import plugrad
from plugrad import Tensor
from plugrad_special import special


def psi(z: Tensor) -> Tensor:
    return special.digamma(z)


def check_polygamma(n: int, z: Tensor) -> None:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")


def log_of_power(base: Tensor, exponent: Tensor) -> Tensor:
    """log(base^exponent); where the exponent is 0, it and its derivatives by the base are 0."""
    flat = exponent == 0
    one = plugrad.ones((), dtype=base.dtype, device=base.device)
    return plugrad.xlogy(exponent, plugrad.where(flat, one, base))


def gamma_density(a: Tensor, x: Tensor) -> Tensor:
    """x^(a - 1) exp(-x) / gamma(a), DLMF 8.8.13; nan for x < 0, like `gammainc`."""
    density = (log_of_power(x, a - 1) - x - plugrad.lgamma(a)).exp()
    return plugrad.where(x < 0, math.nan, density)


def rgamma_derivative(z: Tensor) -> Tensor:
    """-digamma(z) / gamma(z); left of 1/2 by reflection, where neither factor has poles."""
    left = plugrad.real(z.detach()) < 0.5
    half = plugrad.full_like(z, 0.5)
    right = plugrad.where(left, half, z)
    mirrored = 1 - plugrad.where(left, z, half)
    sine = (math.pi * mirrored).sin() / math.pi
    # sin(pi z) = sin(pi (1 - z)), and the cosines differ by their sign.
    reflected = special.gamma(mirrored) * (
        -(math.pi * mirrored).cos() - special.digamma(mirrored) * sine
    )
    return plugrad.where(left, reflected, -special.digamma(right) * special.rgamma(right))
