"""Formulas and checks of ops/integrals.yaml."""

from __future__ import annotations

from plugrad import Tensor
from plugrad_special import special
from plugrad_special.formulas.gradients import Gradients, total
from plugrad_special.formulas.quotients import sin_quotient, sinh_quotient


def expn_derivative(n: int, x: Tensor) -> Tensor:
    """-E_(n-1)(x); of E_0(x) = exp(-x) / x by the quotient rule."""
    if n == 0:
        return -(-x).exp() * (1 + x) / (x * x)
    return -special.expn(n - 1, x)


def sici_backward(grads: Gradients, z: Tensor) -> Tensor | None:
    return total(grads, lambda: sin_quotient(z), lambda: z.cos() / z)


def shichi_backward(grads: Gradients, z: Tensor) -> Tensor | None:
    return total(grads, lambda: sinh_quotient(z), lambda: z.cosh() / z)
