"""Distributions of positive numbers that are based on gamma numbers."""

from __future__ import annotations

import math
from typing import Any

import plugrad
from plugrad import Size, Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.distribution import ExponentialFamily, Family
from plugrad_distributions.distributions.utils import broadcast_all

__all__ = ["Chi2", "Exponential", "FisherSnedecor", "Gamma"]


class Exponential(ExponentialFamily):
    """The exponential distribution, with density rate exp(-rate x).

    >>> import plugrad
    >>> plugrad.distributions.Exponential(2.0).log_prob(plugrad.tensor(0.5))
    tensor(-0.3069)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    event_dims = {"rate": 0}
    _mean_carrier_measure = 0

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return plugrad.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 1 - plugrad.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -plugrad.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1 - plugrad.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        (x,) = natural_params
        return -plugrad.log(-x)


class Gamma(ExponentialFamily):
    """The gamma distribution with a concentration (shape) and a rate (the inverse of the scale).

    >>> import plugrad
    >>> plugrad.distributions.Gamma(2.0, 3.0).log_prob(plugrad.tensor(0.5))
    tensor(0.0041)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    event_dims = {"concentration": 0, "rate": 0}
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = plugrad._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        # A sample rounded to 0 would have no logarithm.
        value.detach().clamp_(min=plugrad.finfo(value.dtype).tiny)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = plugrad.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (
            plugrad.xlogy(self.concentration, self.rate)
            + plugrad.xlogy(self.concentration - 1, value)
            - self.rate * value
            - plugrad.lgamma(self.concentration)
        )

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return plugrad.igamma(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        return (
            self.concentration
            - plugrad.log(self.rate)
            + plugrad.lgamma(self.concentration)
            + (1.0 - self.concentration) * plugrad.digamma(self.concentration)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        x, y = natural_params
        return plugrad.lgamma(x + 1) + (x + 1) * plugrad.log(-y.reciprocal())


class Chi2(Gamma):
    """The chi-squared distribution: the sum of `df` squared normal numbers.

    >>> import plugrad
    >>> plugrad.distributions.Chi2(3.0).log_prob(plugrad.tensor(0.5))
    tensor(-1.5155)
    """

    arg_constraints = {"df": constraints.positive}
    event_dims = {"concentration": 0, "rate": 0}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2


class FisherSnedecor(Family):
    """The F distribution: the quotient of two chi-squared numbers, each divided by its degrees of
    freedom, `df1` and `df2`.

    >>> import plugrad
    >>> plugrad.distributions.FisherSnedecor(3.0, 4.0).log_prob(plugrad.tensor(0.5))
    tensor(-0.5709)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    event_dims = {"df1": 0, "df2": 0}

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gammas = Gamma(self.df1 * 0.5, self.df1), Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    def _copy_to(self, new: Any, batch_shape: Size) -> None:
        new._gammas = tuple(gamma.expand(batch_shape) for gamma in self._gammas)

    @property
    def mean(self) -> Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, math.nan)

    @property
    def variance(self) -> Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 4, math.nan)
        spread = self.df1 * (df2 - 2).square() * (df2 - 4)
        return 2 * df2.square() * (self.df1 + df2 - 2) / spread

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = Size(sample_shape)
        over, under = (gamma.rsample(shape) for gamma in self._gammas)
        tiny = plugrad.finfo(under.dtype).tiny
        under = under.clamp(min=tiny)
        return (over / under).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        half1, half2 = self.df1 * 0.5, self.df2 * 0.5
        ratio = self.df1 / self.df2
        log_beta = plugrad.lgamma(half1) + plugrad.lgamma(half2) - plugrad.lgamma(half1 + half2)
        return (
            half1 * ratio.log()
            + (half1 - 1) * plugrad.log(value)
            - (half1 + half2) * plugrad.log1p(ratio * value)
            - log_beta
        )
