"""Distributions of angles."""

from __future__ import annotations

import math
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.distribution import Family
from plugrad_distributions.distributions.utils import broadcast_all, lazy_property

__all__ = ["VonMises"]

# Polynomials in (x / 3.75)**2 and 3.75 / x for the modified Bessel functions.
# Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 9.8.1 to 9.8.4.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411),
)
_LARGE = (
    (
        *(0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706),
        *(0.02635537, -0.01647633, 0.00392377),
    ),
    (
        *(0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967),
        *(-0.02895312, 0.01787654, -0.00420059),
    ),
)
_LIMIT = 3.75


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    result = x * coefficients[-1] + coefficients[-2]
    for coefficient in reversed(coefficients[:-2]):
        result = result * x + coefficient
    return result


def log_bessel(x: Tensor, order: int = 0) -> Tensor:
    """The logarithm of the modified Bessel function of the first kind, of order 0 or 1."""
    squares = (x / _LIMIT).square()
    small = _polynomial(squares, _SMALL[order])
    if order == 1:
        small = x.abs() * small
    large = x - 0.5 * x.log() + _polynomial(_LIMIT / x, _LARGE[order]).log()
    return plugrad.where(x < _LIMIT, small.log(), large)


class VonMises(Family):
    """The von Mises distribution: a normal distribution for angles from -pi to pi, in radians.

    >>> import plugrad
    >>> plugrad.distributions.VonMises(0.0, 2.0).log_prob(plugrad.tensor(0.5))
    tensor(-0.9067)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    event_dims = {"loc": 0, "concentration": 0}

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        reach = self.concentration * plugrad.cos(value - self.loc)
        return reach - math.log(2 * math.pi) - log_bessel(self.concentration)

    @lazy_property
    def _loc(self) -> Tensor:
        return self.loc.to(plugrad.double)

    @lazy_property
    def _concentration(self) -> Tensor:
        return self.concentration.to(plugrad.double)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """The parameter of the wrapped Cauchy distribution that proposes angles; its series for
        small concentrations."""
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        found = (1 + rho**2) / (2 * rho)
        return plugrad.where(kappa < 1e-5, 1 / kappa + kappa, found)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Rejection sampling from a wrapped Cauchy distribution, in float64.

        Source: Best and Fisher, Efficient Simulation of the von Mises Distribution, 1979.
        """
        shape = self._extended_shape(sample_shape)
        kappa, r = self._concentration, self._proposal_r
        with plugrad.no_grad():
            x = plugrad.empty(shape, dtype=plugrad.double, device=self.loc.device)
            done = plugrad.zeros(shape, dtype=plugrad.bool, device=self.loc.device)
            while not done.all():
                u = plugrad.rand((3, *shape), dtype=plugrad.double, device=self.loc.device)
                u1, u2, u3 = u.unbind()
                z = plugrad.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accepted = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                if accepted.any():
                    x = plugrad.where(accepted, (u3 - 0.5).sign() * f.acos(), x)
                    done = done | accepted
            return ((x + math.pi + self._loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        """The direction of the mean."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        """The circular variance: 1 minus the length of the mean direction."""
        kappa = self.concentration
        return 1 - (log_bessel(kappa, 1) - log_bessel(kappa, 0)).exp()
