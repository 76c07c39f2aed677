"""Distributions on all numbers, with a location and a scale."""

from __future__ import annotations

import math
from typing import Any

import plugrad
from plugrad import Size, Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.distribution import ExponentialFamily, Family
from plugrad_distributions.distributions.univariate.gamma import Chi2
from plugrad_distributions.distributions.utils import broadcast_all, standard_normal, uniform

__all__ = ["Cauchy", "Laplace", "Normal", "StudentT", "Uniform"]

_LOCATION_AND_SCALE = {"loc": constraints.real, "scale": constraints.positive}


class Normal(ExponentialFamily):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    >>> import plugrad
    >>> normal = plugrad.distributions.Normal(0.0, 1.0)
    >>> normal.log_prob(plugrad.tensor(0.0))
    tensor(-0.9189)
    """

    arg_constraints = _LOCATION_AND_SCALE
    support = constraints.real
    has_rsample = True
    event_dims = {"loc": 0, "scale": 0}
    _mean_carrier_measure = 0

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with plugrad.no_grad():
            return plugrad.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        eps = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = (value - self.loc).square() / (2 * self.scale.square())
        return -distance - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        reach = (value - self.loc) * self.scale.reciprocal() / math.sqrt(2)
        return 0.5 * (1 + plugrad.erf(reach))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * plugrad.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + plugrad.log(self.scale)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        variance = self.scale.square()
        return self.loc / variance, -0.5 * variance.reciprocal()

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        x, y = natural_params
        return -0.25 * x.square() / y + 0.5 * plugrad.log(-math.pi / y)


class Laplace(Family):
    """The Laplace distribution, with density exp(-|x - loc| / scale) / (2 scale).

    >>> import plugrad
    >>> plugrad.distributions.Laplace(0.0, 1.0).log_prob(plugrad.tensor(0.5))
    tensor(-1.1931)
    """

    arg_constraints = _LOCATION_AND_SCALE
    support = constraints.real
    has_rsample = True
    event_dims = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = plugrad.finfo(self.loc.dtype).eps
        u = self.loc.new_empty(shape).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * plugrad.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -plugrad.log(2 * self.scale) - plugrad.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        distance = value - self.loc
        return 0.5 - 0.5 * distance.sign() * plugrad.expm1(-distance.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * plugrad.log1p(-2 * term.abs())

    def entropy(self) -> Tensor:
        return 1 + plugrad.log(2 * self.scale)


class Cauchy(Family):
    """The Cauchy distribution: the quotient of two normal numbers; it has no mean.

    >>> import plugrad
    >>> plugrad.distributions.Cauchy(0.0, 1.0).log_prob(plugrad.tensor(0.5))
    tensor(-1.3679)
    """

    arg_constraints = _LOCATION_AND_SCALE
    support = constraints.real
    has_rsample = True
    event_dims = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return plugrad.full_like(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return plugrad.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        eps = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        reach = ((value - self.loc) / self.scale).square()
        return -math.log(math.pi) - self.scale.log() - reach.log1p()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return plugrad.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return plugrad.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class StudentT(Family):
    """Student's t distribution with `df` degrees of freedom, shifted by `loc` and scaled by
    `scale`.

    >>> import plugrad
    >>> plugrad.distributions.StudentT(3.0).log_prob(plugrad.tensor(0.5))
    tensor(-1.1610)
    """

    arg_constraints = {"df": constraints.positive, **_LOCATION_AND_SCALE}
    support = constraints.real
    has_rsample = True
    event_dims = {"df": 0, "loc": 0, "scale": 0}

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def _copy_to(self, new: Any, batch_shape: Size) -> None:
        new._chi2 = self._chi2.expand(batch_shape)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        df = self.df
        finite = self.scale.square() * df / plugrad.where(df > 2, df - 2, 1)
        spread = plugrad.where(df > 2, finite, math.inf)
        return plugrad.where(df > 1, spread, math.nan).to(df.dtype)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        numerator = standard_normal(shape, self.df)
        squares = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (numerator * plugrad.rsqrt(squares / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        log_normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + plugrad.lgamma(0.5 * self.df)
            - plugrad.lgamma(0.5 * (self.df + 1))
        )
        return -0.5 * (self.df + 1) * plugrad.log1p(y.square() / self.df) - log_normalizer

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = plugrad.lgamma(half) + math.lgamma(0.5) - plugrad.lgamma(more)
        slope = plugrad.digamma(more) - plugrad.digamma(half)
        return self.scale.log() + more * slope + 0.5 * self.df.log() + log_beta


class Uniform(Family):
    """Uniform density from `low`, included, to `high`, excluded.

    With `validate_args`, `low` must be less than `high`.

    >>> import plugrad
    >>> plugrad.distributions.Uniform(0.0, 2.0).log_prob(plugrad.tensor(0.5))
    tensor(-0.6931)
    """

    has_rsample = True
    event_dims = {"low": 0, "high": 0}

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.size(), validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {
            "low": constraints.less_than(self.high),
            "high": constraints.greater_than(self.low),
        }

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return plugrad.full_like(self.low, math.nan)

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        fraction = uniform(self._extended_shape(sample_shape), self.low)
        return self.low + fraction * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        inside = self.low.le(value) & self.high.gt(value)
        return plugrad.log(inside.type_as(self.low)) - plugrad.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return plugrad.log(self.high - self.low)
