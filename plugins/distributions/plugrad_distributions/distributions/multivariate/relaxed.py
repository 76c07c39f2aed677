"""Continuous relaxations of 0 and 1 and of categories, and the logistic normal distribution."""

from __future__ import annotations

import math
from typing import Any

import plugrad
from plugrad import Size, Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.distribution import Distribution
from plugrad_distributions.distributions.multivariate.categorical import Categorical
from plugrad_distributions.distributions.transforms import (
    ExpTransform,
    SigmoidTransform,
    StickBreakingTransform,
)
from plugrad_distributions.distributions.univariate.counts import Odds
from plugrad_distributions.distributions.univariate.location_scale import Normal
from plugrad_distributions.distributions.univariate.transformed import OfParameters
from plugrad_distributions.distributions.utils import broadcast_all, clamp_probs, uniform

__all__ = [
    "ExpRelaxedCategorical",
    "LogisticNormal",
    "LogitRelaxedBernoulli",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
]


class LogitRelaxedBernoulli(Odds):
    """The logit of a relaxed Bernoulli number.

    Source: Maddison, Mnih and Teh, The Concrete Distribution, ICLR 2017.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    event_dims = {"probs": 0, "logits": 0}

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._take(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super().__init__(self._given.size(), validate_args=validate_args)

    def _copy_to(self, new: Any, batch_shape: Size) -> None:
        new.temperature = self.temperature

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(uniform(shape, probs))
        odds = u.log() - (-u).log1p() + probs.log() - (-probs).log1p()
        return odds / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        reach = logits - value.mul(self.temperature)
        return plugrad.log(plugrad.as_tensor(self.temperature)) + reach - 2 * reach.exp().log1p()


class _Relaxed(OfParameters):
    """Properties that relaxed distributions take from their base distribution."""

    @property
    def temperature(self) -> Any:
        """How far the values are from discrete ones: 0 would give exact 0 and 1."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log odds, or the logarithms of probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs


class RelaxedBernoulli(_Relaxed):
    """Numbers between 0 and 1 that approach Bernoulli numbers as the temperature approaches 0;
    samples are differentiable.

    >>> import plugrad
    >>> temperature, probs = plugrad.tensor(0.5), plugrad.tensor([0.2, 0.8])
    >>> plugrad.distributions.RelaxedBernoulli(temperature, probs).rsample().shape
    plugrad.Size([2])
    """

    arg_constraints = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.unit_interval
    has_rsample = True
    own = ()

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)


class ExpRelaxedCategorical(Distribution):
    """The logarithm of a relaxed one-hot vector.

    Source: Maddison, Mnih and Teh, The Concrete Distribution, ICLR 2017.
    """

    arg_constraints = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    # Their exponentials sum to one.
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(ExpRelaxedCategorical, _instance)
        batch_shape = Size(batch_shape)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter, with the categories last."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(uniform(shape, self.logits))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        count = self._categorical._num_events
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        temperature = plugrad.as_tensor(self.temperature, dtype=logits.dtype)
        scale = math.lgamma(float(count)) - temperature.log().mul(-(count - 1.0))
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(_Relaxed):
    """Vectors of the simplex that approach one-hot vectors as the temperature approaches 0; samples
    are differentiable.

    >>> import plugrad
    >>> temperature, probs = plugrad.tensor(0.5), plugrad.tensor([0.2, 0.8])
    >>> plugrad.distributions.RelaxedOneHotCategorical(temperature, probs).rsample().shape
    plugrad.Size([2])
    """

    arg_constraints = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.simplex
    has_rsample = True
    own = ()

    def __init__(
        self,
        temperature: Any,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)


class LogisticNormal(OfParameters):
    """Vectors of the simplex, made by stick breaking from normal vectors with one dimension less.

    >>> import plugrad
    >>> plugrad.distributions.LogisticNormal(plugrad.zeros(2), plugrad.ones(2)).sample().shape
    plugrad.Size([3])
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.simplex
    has_rsample = True
    own = ()

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the normal vector."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the normal vector."""
        return self.base_dist.base_dist.scale
