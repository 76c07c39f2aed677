"""Distributions of transformed numbers from simpler distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import plugrad
from plugrad import Size, Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.combined.transformed import TransformedDistribution
from plugrad_distributions.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
)
from plugrad_distributions.distributions.univariate.gamma import Gamma
from plugrad_distributions.distributions.univariate.location_scale import Cauchy, Normal, Uniform
from plugrad_distributions.distributions.utils import broadcast_all, euler_constant

__all__ = [
    "HalfCauchy",
    "HalfNormal",
    "InverseGamma",
    "Kumaraswamy",
    "LogNormal",
]


class OfParameters(TransformedDistribution):
    """A transformed distribution with its own parameters.

    Attributes:
        own: the names of parameters that are stored besides the base distribution.
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
    """The exponential of a normal number with mean `loc` and standard deviation `scale`.

    >>> import plugrad
    >>> plugrad.distributions.LogNormal(0.0, 1.0).log_prob(plugrad.tensor(0.5))
    tensor(-0.4660)
    """

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
    """The absolute value of a normal number with mean 0 and standard deviation `scale`.

    >>> import plugrad
    >>> plugrad.distributions.HalfNormal(1.0).log_prob(plugrad.tensor(0.5))
    tensor(-0.3508)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    own = ()

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The standard deviation before taking the absolute value."""
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
    """The absolute value of a Cauchy number with location 0; it has no mean.

    >>> import plugrad
    >>> plugrad.distributions.HalfCauchy(1.0).log_prob(plugrad.tensor(0.5))
    tensor(-0.6747)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    own = ()

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The median."""
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
    """The reciprocal of a gamma number with a concentration and a rate.

    >>> import plugrad
    >>> plugrad.distributions.InverseGamma(2.0, 1.0).log_prob(plugrad.tensor(0.5))
    tensor(0.0794)
    """

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
        """The concentration of the gamma number."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of the gamma number, which is the scale of its reciprocal."""
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


class Kumaraswamy(OfParameters):
    """The Kumaraswamy distribution of numbers from 0 to 1, with the cdf 1 - (1 -
    x**concentration1)**concentration0.

    >>> import plugrad
    >>> plugrad.distributions.Kumaraswamy(2.0, 3.0).log_prob(plugrad.tensor(0.5))
    tensor(0.5232)
    """

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
