"""Distributions of extreme values, of lifetimes, and of values above a threshold."""

from __future__ import annotations

import math
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.distribution import Family
from plugrad_distributions.distributions.transforms import (
    AffineTransform,
    ExpTransform,
    PowerTransform,
)
from plugrad_distributions.distributions.univariate.gamma import Exponential
from plugrad_distributions.distributions.univariate.location_scale import Uniform
from plugrad_distributions.distributions.univariate.transformed import OfParameters
from plugrad_distributions.distributions.utils import broadcast_all, euler_constant, uniform

__all__ = ["GeneralizedPareto", "Gumbel", "Pareto", "Weibull"]


class Gumbel(OfParameters):
    """The Gumbel distribution: the largest of many numbers.

    >>> import plugrad
    >>> plugrad.distributions.Gumbel(0.0, 1.0).log_prob(plugrad.tensor(0.5))
    tensor(-1.1065)
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    own = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        found = plugrad.finfo(self.loc.dtype)
        base = Uniform(
            plugrad.full_like(self.loc, found.tiny),
            plugrad.full_like(self.loc, 1 - found.eps),
            validate_args=validate_args,
        )
        # loc - scale log(-log(u))
        negative = AffineTransform(loc=0, scale=-plugrad.ones_like(self.scale))
        moved = AffineTransform(loc=self.loc, scale=-self.scale)
        logarithm = ExpTransform().inv
        super().__init__(base, [logarithm, negative, logarithm, moved], validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)


class Pareto(OfParameters):
    """Numbers above `scale`; the probability of a value above x is in proportion to x**-alpha.

    >>> import plugrad
    >>> plugrad.distributions.Pareto(0.25, 2.0).log_prob(plugrad.tensor(0.5))
    tensor(0.)
    """

    arg_constraints = {
        "alpha": constraints.positive,
        "scale": constraints.positive,
    }
    own = ("scale", "alpha")

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        stretched = AffineTransform(loc=0, scale=self.scale)
        super().__init__(base, [ExpTransform(), stretched], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        # There is none up to alpha = 1.
        alpha = self.alpha.clamp(min=1)
        return alpha * self.scale / (alpha - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        alpha = self.alpha.clamp(min=2)
        return self.scale.square() * alpha / ((alpha - 1).square() * (alpha - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


class Weibull(OfParameters):
    """The Weibull distribution with a scale and a concentration (shape).

    >>> import plugrad
    >>> plugrad.distributions.Weibull(1.0, 2.0).log_prob(plugrad.tensor(0.5))
    tensor(-0.2500)
    """

    arg_constraints = {
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support = constraints.positive
    own = ("scale", "concentration", "concentration_reciprocal")

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(plugrad.ones_like(self.scale), validate_args=validate_args)
        power = PowerTransform(exponent=self.concentration_reciprocal)
        stretched = AffineTransform(loc=0, scale=self.scale)
        super().__init__(base, [power, stretched], validate_args=validate_args)

    def _gamma(self, order: int) -> Tensor:
        return plugrad.exp(plugrad.lgamma(1 + order * self.concentration_reciprocal))

    @property
    def mean(self) -> Tensor:
        return self.scale * self._gamma(1)

    @property
    def mode(self) -> Tensor:
        fraction = (self.concentration - 1) / self.concentration
        return self.scale * fraction**self.concentration_reciprocal

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (self._gamma(2) - self._gamma(1).square())

    def entropy(self) -> Tensor:
        return (
            euler_constant * (1 - self.concentration_reciprocal)
            + plugrad.log(self.scale * self.concentration_reciprocal)
            + 1
        )


class GeneralizedPareto(Family):
    """The generalized Pareto distribution, of values above a threshold `loc`; with `concentration`
    0 it is exponential.

    Source: Hosking and Wallis, Parameter and Quantile Estimation for the Generalized Pareto
    Distribution, Technometrics 29 (1987).

    >>> import plugrad
    >>> plugrad.distributions.GeneralizedPareto(0.0, 1.0, 0.2).log_prob(plugrad.tensor(0.5))
    tensor(-0.5719)
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    event_dims = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        above = self.loc - self.scale / self.concentration
        # Bounded above only for negative concentrations.
        end = plugrad.where(self.concentration < 0, above, math.inf)
        return constraints.interval(self.loc, end)

    def _is_exponential(self) -> Tensor:
        return plugrad.isclose(self.concentration, plugrad.zeros_like(self.concentration))

    def _shape(self) -> Tensor:
        """The concentration as a divisor, with 1 in place of 0."""
        return plugrad.where(self._is_exponential(), 1.0, self.concentration)

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z, shape = self._z(value), self._shape()
        bent = (1 + 1 / shape) * plugrad.log1p(shape * z)
        return -self.scale.log() - plugrad.where(self._is_exponential(), z, bent)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of values above this one."""
        if self._validate_args:
            self._validate_sample(value)
        z, shape = self._z(value), self._shape()
        return plugrad.where(self._is_exponential(), -z, -plugrad.log1p(shape * z) / shape)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of `cdf`."""
        return plugrad.log1p(-plugrad.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return plugrad.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        shape = self._shape()
        left = plugrad.log1p(-value)
        z = plugrad.where(self._is_exponential(), -left, plugrad.expm1(-shape * left) / shape)
        return self.loc + self.scale * z

    @property
    def mean(self) -> Tensor:
        shape = self.concentration
        found = self.loc + self.scale / (1 - plugrad.where(shape < 1, shape, 0.5))
        return plugrad.where(shape < 1, found, math.nan)

    @property
    def variance(self) -> Tensor:
        shape = self.concentration
        safe = plugrad.where(shape < 0.5, shape, 0.25)
        found = self.scale.square() / ((1 - safe).square() * (1 - 2 * safe))
        return plugrad.where(shape < 0.5, found, math.nan)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1

    @property
    def mode(self) -> Tensor:
        return self.loc
