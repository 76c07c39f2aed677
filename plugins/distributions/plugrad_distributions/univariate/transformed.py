"""Distributions of numbers that are transformed ones of simpler distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import plugrad
from plugrad import Size, Tensor
from plugrad_distributions import constraints
from plugrad_distributions.combined.transformed import TransformedDistribution
from plugrad_distributions.distribution import Family
from plugrad_distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
)
from plugrad_distributions.univariate.gamma import Exponential, Gamma
from plugrad_distributions.univariate.location_scale import Cauchy, Normal, Uniform
from plugrad_distributions.utils import broadcast_all, euler_constant, uniform

__all__ = [
    "GeneralizedPareto",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "InverseGamma",
    "Kumaraswamy",
    "LogNormal",
    "Pareto",
    "Weibull",
]


class OfParameters(TransformedDistribution):
    """One with parameters of its own.

    Attributes:
        own: their names, of those that are kept beside the base distribution.
    """

    own: ClassVar[tuple[str, ...]] = ()

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        definer = next(cls for cls in type(self).__mro__ if "own" in vars(cls))
        new = self._get_checked_instance(definer, _instance)
        batch_shape = Size(batch_shape)
        for name in self.own:
            vars(new)[name] = vars(self)[name].expand(batch_shape)
        return TransformedDistribution.expand(self, batch_shape, _instance=new)


class LogNormal(OfParameters):
    """The exponential of a normal number with mean `loc` and standard deviation `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    own = ()

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        squares = self.scale.square()
        return squares.expm1() * (2 * self.loc + squares).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class HalfNormal(OfParameters):
    """The absolute value of a normal number with mean 0 and standard deviation `scale`."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    own = ()

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The standard deviation before its sign is dropped."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return plugrad.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)

    def log_prob(self, value: Tensor) -> Tensor:
        return _log_half(self, value)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


def _log_half(self: HalfNormal | HalfCauchy, value: Tensor) -> Tensor:
    """The logarithm of a density of absolute values."""
    if self._validate_args:
        self._validate_sample(value)
    value = plugrad.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
    found = self.base_dist.log_prob(value) + math.log(2)
    return plugrad.where(value >= 0, found, -math.inf)


class HalfCauchy(OfParameters):
    """The absolute value of a Cauchy number with location 0; it has no mean."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    own = ()

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The value that half of the numbers are below."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return plugrad.full_like(self.scale, math.inf)

    @property
    def mode(self) -> Tensor:
        return plugrad.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Tensor) -> Tensor:
        return _log_half(self, value)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class InverseGamma(OfParameters):
    """The reciprocal of a gamma number with a concentration and a rate."""

    arg_constraints = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.positive
    has_rsample = True
    own = ()

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        inverse = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, inverse, validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """Of the gamma number."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """Of the gamma number: the scale of this one."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        found = self.rate / (self.concentration - 1)
        return plugrad.where(self.concentration > 1, found, math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        less = self.concentration - 1
        found = self.rate.square() / (less.square() * (self.concentration - 2))
        return plugrad.where(self.concentration > 2, found, math.inf)

    def entropy(self) -> Tensor:
        return (
            self.concentration
            + self.rate.log()
            + self.concentration.lgamma()
            - (1 + self.concentration) * self.concentration.digamma()
        )


class Gumbel(OfParameters):
    """The Gumbel distribution: of the largest of many numbers."""

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
    """Numbers above `scale`, of which those above x are in proportion to x**-alpha."""

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
        # Up to alpha = 1 there is none.
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
    """The Weibull distribution with a scale and a concentration (shape)."""

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


class Kumaraswamy(OfParameters):
    """The Kumaraswamy distribution: numbers x from 0 to 1 of which the fraction
    1 - (1 - x**concentration1)**concentration0 is below x."""

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    own = ("concentration1", "concentration0")

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(
            plugrad.zeros_like(self.concentration0),
            plugrad.ones_like(self.concentration0),
            validate_args=validate_args,
        )
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, order: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        part = 1 + order / a
        return plugrad.exp(
            plugrad.lgamma(part) + plugrad.lgamma(b) - plugrad.lgamma(part + b) + b.log()
        )

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_mode = a.reciprocal() * ((a - 1).log() - (a * b - 1).log())
        return log_mode.exp().masked_fill((a < 1) | (b < 1), math.nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1).square()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = plugrad.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()


class GeneralizedPareto(Family):
    """The generalized Pareto distribution, of what exceeds a high limit `loc`; with
    `concentration` 0 it is exponential.

    Source: Hosking and Wallis, Parameter and Quantile Estimation for the Generalized Pareto
    Distribution, Technometrics 29 (1987).
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
        # Bounded above only where the concentration is negative.
        end = plugrad.where(self.concentration < 0, above, math.inf)
        return constraints.interval(self.loc, end)

    def _is_exponential(self) -> Tensor:
        return plugrad.isclose(self.concentration, plugrad.zeros_like(self.concentration))

    def _shape(self) -> Tensor:
        """The concentration, with 1 in place of 0, for what is divided by it."""
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
        """The logarithm of the probability of more than a value."""
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
