"""Formulas and decompositions of ops/error.yaml."""

from __future__ import annotations

import math

import plugrad
from plugrad import Tensor
from plugrad_special import special
from plugrad_special.formulas.gradients import Gradients, total


def erf(z: Tensor) -> Tensor:
    return special._erf_complex(z) if z.is_complex() else plugrad.erf(z)


def erfc(z: Tensor) -> Tensor:
    return special._erfc_complex(z) if z.is_complex() else plugrad.erfc(z)


def ndtr(x: Tensor) -> Tensor:
    return special.erfc(x * -math.sqrt(0.5)) / 2


def voigt_profile_backward(
    grad: Tensor, x: Tensor, sigma: Tensor, gamma: Tensor, result: Tensor, mask: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    """Through the derivative of w, DLMF 7.10.2."""
    scale = sigma * math.sqrt(2)
    x, gamma = plugrad.broadcast_tensors(x, gamma)
    z = plugrad.complex(x, gamma) / scale
    slope = (2j / math.sqrt(math.pi) - 2 * z * special.wofz(z)) / (scale * sigma)
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
