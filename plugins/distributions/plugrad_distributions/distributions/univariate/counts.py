"""Distributions of 0 and 1, and of counts."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Size, Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.distribution import ExponentialFamily, Family
from plugrad_distributions.distributions.univariate.gamma import Gamma
from plugrad_distributions.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
    uniform,
)

__all__ = ["Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson"]


class Odds(Family):
    """A distribution given by either a probability or its log odds.

    `probs` and `logits` are computed from each other at first use.
    """

    def _take(self, probs: Any, logits: Any) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")

    @property
    def _given(self) -> Tensor:
        """The parameter that was given."""
        given: Tensor = vars(self)["probs"] if "probs" in vars(self) else vars(self)["logits"]
        return given

    @lazy_property
    def probs(self) -> Tensor:
        """The probability of a 1."""
        return logits_to_probs(self.logits, is_binary=True)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithm of the odds of a 1."""
        return probs_to_logits(self.probs, is_binary=True)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._given.size()

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._given.new(*args, **kwargs)


_BY_ODDS: dict[str, constraints.Constraint] = {
    "probs": constraints.unit_interval,
    "logits": constraints.real,
}


def _enumerated(values: Tensor, batch: Size, expand: bool) -> Tensor:
    """Values of a discrete distribution as `enumerate_support` returns them."""
    values = values.reshape((-1,) + (1,) * len(batch))
    return values.expand((-1, *batch)) if expand else values


class Bernoulli(Odds, ExponentialFamily):
    """1 with probability `probs`, which may be given by `logits`, else 0.

    >>> import plugrad
    >>> plugrad.distributions.Bernoulli(probs=0.25).variance
    tensor(0.1875)
    """

    arg_constraints = _BY_ODDS
    support = constraints.boolean
    has_enumerate_support = True
    event_dims = {"probs": 0, "logits": 0}
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super().__init__(self._given.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        return mode.masked_fill(self.probs == 0.5, float("nan"))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with plugrad.no_grad():
            return plugrad.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -plugrad.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return plugrad.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = plugrad.arange(2, dtype=self._given.dtype, device=self._given.device)
        return _enumerated(values, self._batch_shape, expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (plugrad.logit(self.probs),)

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        (x,) = natural_params
        return plugrad.log1p(plugrad.exp(x))


class Geometric(Odds):
    """The number of failures before the first success, which has probability `probs`.

    >>> import plugrad
    >>> plugrad.distributions.Geometric(0.5).log_prob(plugrad.tensor(2.0))
    tensor(-2.0794)
    """

    arg_constraints = _BY_ODDS
    support = constraints.nonnegative_integer
    event_dims = {"probs": 0, "logits": 0}

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        super().__init__(self._given.size(), validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ValueError(
                f"Expected parameter probs (Tensor of shape {tuple(self.probs.shape)}) of "
                f"distribution {self!r} to be positive but found invalid values:\n{self.probs}"
            )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return plugrad.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with plugrad.no_grad():
            u = uniform(self._extended_shape(sample_shape), self.probs)
            u = u.clamp(min=plugrad.finfo(self.probs.dtype).tiny)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        # Without failures: 0 times minus infinity must be 0.
        failing = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-failing).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        each = plugrad.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return each / self.probs


class Binomial(Odds):
    """The number of successes in `total_count` trials, each with probability `probs`.

    >>> import plugrad
    >>> plugrad.distributions.Binomial(5, 0.5).log_prob(plugrad.tensor(2.0))
    tensor(-1.1632)
    """

    arg_constraints = {"total_count": constraints.nonnegative_integer, **_BY_ODDS}
    has_enumerate_support = True
    event_dims = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        if probs is not None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
        self.total_count = self.total_count.type_as(self._given)
        super().__init__(self._given.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with plugrad.no_grad():
            return plugrad.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        count = self.total_count
        chosen = (
            plugrad.lgamma(count + 1)
            - plugrad.lgamma(value + 1)
            - plugrad.lgamma(count - value + 1)
        )
        # n log(1 + exp(logits)) so that exp does not overflow.
        failing = count * self.logits.clamp(min=0) + count * plugrad.log1p(
            plugrad.exp(-plugrad.abs(self.logits))
        )
        return value * self.logits + chosen - failing

    def _one_count(self, what: str) -> int:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return count

    def entropy(self) -> Tensor:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(plugrad.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        given = self._given
        count = self._one_count("enumerate_support")
        values = plugrad.arange(1 + count, dtype=given.dtype, device=given.device)
        return _enumerated(values, self._batch_shape, expand)


class NegativeBinomial(Odds):
    """The number of successes, each with probability `probs`, before `total_count` failures.

    >>> import plugrad
    >>> plugrad.distributions.NegativeBinomial(5, 0.5).log_prob(plugrad.tensor(2.0))
    tensor(-2.1440)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    event_dims = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        if probs is not None:
            self.total_count, self.probs = broadcast_all(total_count, probs)
        else:
            self.total_count, self.logits = broadcast_all(total_count, logits)
        self.total_count = self.total_count.type_as(self._given)
        super().__init__(self._given.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * plugrad.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / plugrad.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        return Gamma(self.total_count, plugrad.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with plugrad.no_grad():
            return plugrad.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        count = self.total_count
        log_unnormalized = count * plugrad.log_sigmoid(-self.logits) + value * plugrad.log_sigmoid(
            self.logits
        )
        log_normalization = (
            -plugrad.lgamma(count + value) + plugrad.lgamma(1.0 + value) + plugrad.lgamma(count)
        )
        # With no failures to wait for, there are no successes.
        log_normalization = log_normalization.masked_fill(count + value == 0.0, 0.0)
        return log_unnormalized - log_normalization


class Poisson(ExponentialFamily):
    """The number of events, if `rate` events are expected.

    >>> import plugrad
    >>> plugrad.distributions.Poisson(2.0).log_prob(plugrad.tensor(2.0))
    tensor(-1.3069)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    event_dims = {"rate": 0}

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with plugrad.no_grad():
            return plugrad.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (plugrad.log(self.rate),)

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        (x,) = natural_params
        return plugrad.exp(x)
