"""Divergences between distributions of two families: minus the entropy of p, minus the mean of q's
log density under p, which needs only some moments. Infinite where p has values that q lacks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import plugrad
from plugrad import Tensor
from plugrad_distributions.distributions.kl.registry import register_kl
from plugrad_distributions.distributions.univariate.counts import Bernoulli, Binomial, Poisson
from plugrad_distributions.distributions.univariate.extremes import Gumbel, Pareto
from plugrad_distributions.distributions.univariate.gamma import Exponential, Gamma
from plugrad_distributions.distributions.univariate.location_scale import Laplace, Normal, Uniform
from plugrad_distributions.distributions.univariate.unit_interval import Beta, ContinuousBernoulli
from plugrad_distributions.distributions.utils import euler_constant

Moment = Callable[[Any], Tensor]
Cross = Callable[[Any, Any], Tensor]


def _uniform_log(p: Uniform) -> Tensor:
    ends = p.high.xlogy(p.high) - p.low.xlogy(p.low)
    return ends / (p.high - p.low) - 1


# The mean of the logarithm.
LOG: Final[dict[type, Moment]] = {
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Exponential: lambda p: -euler_constant - p.rate.log(),
    Gamma: lambda p: p.concentration.digamma() - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: _uniform_log,
}

# The mean of the logarithm of 1 minus the value.
LOG_OF_REST: Final[dict[type, Moment]] = {
    Uniform: lambda p: (
        -1 - ((1 - p.high).xlogy(1 - p.high) - (1 - p.low).xlogy(1 - p.low)) / (p.high - p.low)
    ),
}


def _uniform_falling(p: Uniform, rate: Tensor) -> Tensor:
    return ((-p.low * rate).exp() - (-p.high * rate).exp()) / (rate * (p.high - p.low))


# The mean of exp(-rate x).
FALLING: Final[dict[type, Cross]] = {
    Exponential: lambda p, rate: p.rate / (p.rate + rate),
    Gamma: lambda p, rate: (1 + rate / p.rate).pow(-p.concentration),
    Normal: lambda p, rate: (-p.loc * rate + (p.scale * rate).square() / 2).exp(),
    Uniform: _uniform_falling,
}


def to_normal(p: Any, q: Normal) -> Tensor:
    spread = p.variance + (p.mean - q.loc).square()
    constant = 0.5 * math.log(2 * math.pi) + q.scale.log()
    return -p.entropy() + constant + spread / (2 * q.scale.square())


def to_exponential(p: Any, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


def to_gamma(p: Any, q: Gamma) -> Tensor:
    log = LOG[_kind(p, LOG)](p)
    constant = q.concentration.lgamma() - q.concentration * q.rate.log()
    return -p.entropy() + constant - (q.concentration - 1) * log + q.rate * p.mean


def to_beta(p: Any, q: Beta) -> Tensor:
    kind = _kind(p, LOG)
    total = q.concentration1 + q.concentration0
    constant = q.concentration1.lgamma() + q.concentration0.lgamma() - total.lgamma()
    slopes = (q.concentration1 - 1) * LOG[kind](p) + (q.concentration0 - 1) * LOG_OF_REST[kind](p)
    found = -p.entropy() + constant - slopes
    return plugrad.where((p.high > 1) | (p.low < 0), math.inf, found)


def to_gumbel(p: Any, q: Gumbel) -> Tensor:
    rate = q.scale.reciprocal()
    falling = (q.loc * rate).exp() * FALLING[_kind(p, FALLING)](p, rate)
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) * rate + falling


def to_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    found = -p.entropy() - p.mean * q.logits - plugrad.log1p(-q.probs) - q._log_norm()
    if isinstance(p, Uniform):
        return plugrad.where((p.high > 1) | (p.low < 0), math.inf, found)
    return found


def to_uniform(p: Any, q: Uniform) -> Tensor:
    """The divergence from p, a distribution on [0, 1], to a uniform distribution."""
    found = -p.entropy() + (q.high - q.low).log()
    return plugrad.where((q.low > 0) | (q.high < 1), math.inf, found)


def normal_to_laplace(p: Normal, q: Laplace) -> Tensor:
    distance = p.loc - q.loc
    reach = distance / p.scale
    near = math.sqrt(2 / math.pi) * p.scale * plugrad.exp(-0.5 * reach.square())
    far = distance * plugrad.erf(math.sqrt(0.5) * reach)
    return -p.entropy() + (2 * q.scale).log() + (near + far) / q.scale


def uniform_to_pareto(p: Uniform, q: Pareto) -> Tensor:
    constant = q.alpha.log() + q.alpha * q.scale.log()
    found = -p.entropy() - constant + (q.alpha + 1) * _uniform_log(p)
    return plugrad.where(p.low < q.scale, math.inf, found)


def bernoulli_to_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


def infinite(p: Any, q: Any) -> Tensor:
    """Infinite: some values of p are not values of q."""
    of_q = getattr(q, "logits", None)
    like = p.mean if of_q is None else p.mean + 0 * of_q
    shape = plugrad.broadcast_shapes(p.batch_shape, q.batch_shape)
    return plugrad.full(shape, math.inf, dtype=like.dtype, device=like.device)


def _kind(p: Any, moments: dict[type, Any]) -> type:
    return next(kind for kind in moments if isinstance(p, kind))


CROSSED: Final[dict[type, tuple[Any, tuple[type, ...]]]] = {
    Normal: (
        to_normal,
        (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Uniform),
    ),
    Exponential: (to_exponential, (Beta, ContinuousBernoulli, Gamma)),
    Gamma: (to_gamma, (Beta, Exponential)),
    Gumbel: (to_gumbel, (Exponential, Gamma, Normal, Uniform)),
    ContinuousBernoulli: (to_continuous_bernoulli, (Beta, Uniform)),
    Uniform: (to_uniform, (Beta, ContinuousBernoulli)),
    Beta: (to_beta, (Uniform,)),
    Laplace: (normal_to_laplace, (Normal,)),
    Poisson: (bernoulli_to_poisson, (Bernoulli,)),
}

# A uniform distribution may have only positive values.
PARTLY: Final[dict[type, Cross]] = {Exponential: to_exponential, Gamma: to_gamma}

# The lower limit of Pareto's exponent for which the requested moment exists.
OF_PARETO: Final[dict[type, tuple[Cross, float]]] = {
    Exponential: (to_exponential, 1.0),
    Gamma: (to_gamma, 1.0),
    Normal: (to_normal, 2.0),
}

INFINITE: Final[dict[type, tuple[type, ...]]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _of_uniform(cross: Cross) -> Cross:
    def divergence(p: Uniform, q: Any) -> Tensor:
        return plugrad.where(p.low < 0, math.inf, cross(p, q))

    return divergence


def _of_pareto(cross: Cross, least: float) -> Cross:
    def divergence(p: Pareto, q: Any) -> Tensor:
        # An infinite moment would give nan gradients, even where it is not selected.
        exists = p.alpha > least
        tame = Pareto(p.scale, plugrad.where(exists, p.alpha, least + 1), validate_args=False)
        return plugrad.where(exists, cross(tame, q), math.inf)

    return divergence


def register() -> None:
    """Register them."""
    for type_q, (cross, kinds) in CROSSED.items():
        for type_p in kinds:
            register_kl(type_p, type_q)(cross)
    for type_q, cross in PARTLY.items():
        register_kl(Uniform, type_q)(_of_uniform(cross))
    for type_q, (cross, least) in OF_PARETO.items():
        register_kl(Pareto, type_q)(_of_pareto(cross, least))
    register_kl(Uniform, Pareto)(uniform_to_pareto)
    for type_p, others in INFINITE.items():
        for type_q in others:
            register_kl(type_p, type_q)(infinite)
