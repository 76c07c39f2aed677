"""Distributions of numbers from 0 to 1."""

from __future__ import annotations

import math
from typing import Any

import plugrad
from plugrad import Size, Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.distribution import ExponentialFamily
from plugrad_distributions.distributions.multivariate.simplex import Dirichlet
from plugrad_distributions.distributions.univariate.counts import Odds
from plugrad_distributions.distributions.utils import broadcast_all, clamp_probs, uniform

__all__ = ["Beta", "ContinuousBernoulli"]


class Beta(ExponentialFamily):
    """The beta distribution, with density in proportion to x**(concentration1 - 1) (1 -
    x)**(concentration0 - 1).

    >>> import plugrad
    >>> plugrad.distributions.Beta(2.0, 3.0).log_prob(plugrad.tensor(0.5))
    tensor(0.4055)
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    # Its parameters are in the wrapped Dirichlet distribution.
    event_dims = {}

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        if isinstance(concentration1, int | float) and isinstance(concentration0, int | float):
            both = plugrad.tensor([float(concentration1), float(concentration0)])
        else:
            both = plugrad.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def _copy_to(self, new: Any, batch_shape: Size) -> None:
        new._dirichlet = self._dirichlet.expand(batch_shape)

    @property
    def concentration1(self) -> Tensor:
        """The exponent of x, plus one."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """The exponent of 1 - x, plus one."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(plugrad.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        x, y = natural_params
        return plugrad.lgamma(x) + plugrad.lgamma(y) - plugrad.lgamma(x + y)


class ContinuousBernoulli(Odds, ExponentialFamily):
    """Numbers from 0 to 1 with density in proportion to probs**x (1 - probs)**(1 - x).

    Near one half, between `lims`, closed forms lose precision and are replaced by the first terms
    of their series.

    Source: Loaiza-Ganem and Cunningham, The continuous Bernoulli, NeurIPS 2019.

    >>> import plugrad
    >>> plugrad.distributions.ContinuousBernoulli(0.3).log_prob(plugrad.tensor(0.5))
    tensor(-0.0297)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    event_dims = {"probs": 0, "logits": 0}
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
            if validate_args is not None and not constraints.unit_interval.check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._lims = lims
        super().__init__(self._given.size(), validate_args=validate_args)

    def _copy_to(self, new: Any, batch_shape: Size) -> None:
        new._lims = self._lims

    def _stable(self) -> Tensor:
        """Where the closed forms are precise."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self, stable: Tensor) -> Tensor:
        """The probabilities, moved away from one half."""
        return plugrad.where(stable, self.probs, self._lims[0])

    def _log_norm(self) -> Tensor:
        """The logarithm of the density's normalizing constant."""
        stable = self._stable()
        cut = self._cut(stable)
        below = plugrad.where(cut <= 0.5, cut, 0.0)
        above = plugrad.where(cut >= 0.5, cut, 1.0)
        spread = plugrad.where(
            cut <= 0.5, plugrad.log1p(-2.0 * below), plugrad.log(2.0 * above - 1.0)
        )
        log_norm = plugrad.log(plugrad.abs(plugrad.log1p(-cut) - plugrad.log(cut))) - spread
        x = (self.probs - 0.5).square()
        series = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return plugrad.where(stable, log_norm, series)

    @property
    def mean(self) -> Tensor:
        stable = self._stable()
        cut = self._cut(stable)
        mean = cut / (2.0 * cut - 1.0) + 1.0 / (plugrad.log1p(-cut) - plugrad.log(cut))
        x = self.probs - 0.5
        return plugrad.where(stable, mean, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.square()) * x)

    @property
    def stddev(self) -> Tensor:
        return plugrad.sqrt(self.variance)

    @property
    def variance(self) -> Tensor:
        stable = self._stable()
        cut = self._cut(stable)
        odds = plugrad.log1p(-cut) - plugrad.log(cut)
        variance = cut * (cut - 1.0) / (1.0 - 2.0 * cut).square() + 1.0 / odds.square()
        x = (self.probs - 0.5).square()
        series = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return plugrad.where(stable, variance, series)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with plugrad.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        unnormalized = -plugrad.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return unnormalized + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        stable = self._stable()
        cut = self._cut(stable)
        powers = plugrad.pow(cut, value) * plugrad.pow(1.0 - cut, 1.0 - value)
        found = plugrad.where(stable, (powers + cut - 1.0) / (2.0 * cut - 1.0), value)
        found = plugrad.where(value >= 1.0, 1.0, found)
        return plugrad.where(value <= 0.0, 0.0, found)

    def icdf(self, value: Tensor) -> Tensor:
        stable = self._stable()
        cut = self._cut(stable)
        reach = plugrad.log1p(-cut + value * (2.0 * cut - 1.0)) - plugrad.log1p(-cut)
        return plugrad.where(stable, reach / (plugrad.log(cut) - plugrad.log1p(-cut)), value)

    def entropy(self) -> Tensor:
        failing = plugrad.log1p(-self.probs)
        return self.mean * (failing - plugrad.log(self.probs)) - self._log_norm() - failing

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        (x,) = natural_params
        near = (x > self._lims[0] - 0.5) & (x < self._lims[1] - 0.5)
        far = plugrad.where(near, self._lims[1] - 0.5, x)
        closed = plugrad.log(plugrad.abs(plugrad.expm1(far))) - plugrad.log(plugrad.abs(far))
        return plugrad.where(near, 0.5 * x + x.square() / 24.0 - x.pow(4) / 2880.0, closed)
