"""Formulas of ops/elliptic.yaml, in Carlson's integrals."""

from __future__ import annotations

import math

import plugrad
from plugrad import Tensor
from plugrad_special import special
from plugrad_special.formulas.gradients import Gradients, total


def carlson_derivative(
    position: int, x: Tensor, y: Tensor, z: Tensor, p: Tensor, powers: tuple[int, ...]
) -> Tensor | None:
    """The derivative of `_carlson` by one of its four arguments: under the integral."""
    power = powers[position]
    if power == 0:
        return plugrad.zeros_like(x)
    raised = [*powers[:position], power + 2, *powers[position + 1 :]]
    return special._carlson(x, y, z, p, raised) * (-power / 2)


def ellipkinc_by_parameter(phi: Tensor, m: Tensor) -> Tensor:
    """DLMF 19.25.5 and 19.18.1, after the amplitude is brought between -pi/2 and pi/2."""
    sine, squared, turns = _reduced(phi)
    inner = sine**3 * special.elliprd(1 - squared, 1, 1 - m * squared) / 6
    return inner + _of_turns(turns, lambda: special.elliprd(0, 1, 1 - m) / 3)


def ellipeinc_by_parameter(phi: Tensor, m: Tensor) -> Tensor:
    """DLMF 19.4.6, with E - F by DLMF 19.25.9, after the same reduction."""
    sine, squared, turns = _reduced(phi)
    inner = sine**3 * special.elliprd(1 - squared, 1 - m * squared, 1) / -6
    return inner + _of_turns(turns, lambda: special.elliprd(0, 1 - m, 1) / -3)


def _reduced(phi: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sine and squared sine of the amplitude minus the nearest multiple of pi, and that
    multiple."""
    turns = (phi.detach() / math.pi).round()
    sine = (phi - turns * math.pi).sin()
    return sine, sine * sine, turns


def _of_turns(turns: Tensor, complete: object) -> Tensor | float:
    """Half turns add complete integrals, which may be infinite; without half turns, nothing is
    added."""
    if not bool((turns != 0).any()):
        return 0.0
    return plugrad.where(turns == 0, 0.0, turns * complete())  # type: ignore[operator]


def ellipj_by_argument(
    grads: Gradients, m: Tensor, sn: Tensor, cn: Tensor, dn: Tensor
) -> Tensor | None:
    """DLMF 22.13.1."""
    return total(grads, lambda: cn * dn, lambda: -sn * dn, lambda: -m * sn * cn, lambda: dn.clone())


def ellipj_by_parameter(
    grads: Gradients, m: Tensor, sn: Tensor, cn: Tensor, dn: Tensor, ph: Tensor
) -> Tensor | None:
    """From u = F(ph, m) for fixed u: the derivative of ph is the derivative of F by m, times
    -dn."""
    slope = -dn * ellipkinc_by_parameter(ph, m)
    return total(
        grads,
        lambda: cn * slope,
        lambda: -sn * slope,
        lambda: -(sn * sn + 2 * m * sn * cn * slope) / (2 * dn),
        lambda: slope,
    )
