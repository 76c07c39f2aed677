"""Divergences between two distributions of one family."""

from __future__ import annotations

import math
from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributions.distributions.combined.independent import Independent
from plugrad_distributions.distributions.combined.transformed import TransformedDistribution
from plugrad_distributions.distributions.distribution import ExponentialFamily
from plugrad_distributions.distributions.kl.registry import kl_divergence, register_kl
from plugrad_distributions.distributions.multivariate.categorical import (
    Categorical,
    OneHotCategorical,
)
from plugrad_distributions.distributions.multivariate.normal import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    batch_mahalanobis,
    half_log_det,
)
from plugrad_distributions.distributions.multivariate.simplex import Dirichlet
from plugrad_distributions.distributions.univariate.counts import (
    Bernoulli,
    Binomial,
    Geometric,
    Poisson,
)
from plugrad_distributions.distributions.univariate.extremes import Gumbel, Pareto
from plugrad_distributions.distributions.univariate.gamma import Exponential, Gamma
from plugrad_distributions.distributions.univariate.location_scale import (
    Cauchy,
    Laplace,
    Normal,
    Uniform,
)
from plugrad_distributions.distributions.univariate.transformed import HalfNormal
from plugrad_distributions.distributions.univariate.unit_interval import Beta, ContinuousBernoulli
from plugrad_distributions.distributions.utils import euler_constant, sum_rightmost


def bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    hit = p.probs * (plugrad.softplus(-q.logits) - plugrad.softplus(-p.logits))
    hit = plugrad.where(q.probs == 0, math.inf, hit)
    hit = plugrad.where(p.probs == 0, 0.0, hit)
    miss = (1 - p.probs) * (plugrad.softplus(q.logits) - plugrad.softplus(p.logits))
    miss = plugrad.where(q.probs == 1, math.inf, miss)
    miss = plugrad.where(p.probs == 1, 0.0, miss)
    return hit + miss


def beta(p: Beta, q: Beta) -> Tensor:
    total_p = p.concentration1 + p.concentration0
    total_q = q.concentration1 + q.concentration0
    return (
        q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
        - (p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma())
        + (p.concentration1 - q.concentration1) * plugrad.digamma(p.concentration1)
        + (p.concentration0 - q.concentration0) * plugrad.digamma(p.concentration0)
        + (total_q - total_p) * plugrad.digamma(total_p)
    )  # fmt: skip


def binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return plugrad.where((p.total_count > q.total_count).expand_as(kl), math.inf, kl)


def categorical(p: Categorical, q: Categorical) -> Tensor:
    t = p.probs * (p.logits - q.logits)
    t = plugrad.where((q.probs == 0).expand_as(t), math.inf, t)
    return plugrad.where((p.probs == 0).expand_as(t), 0.0, t).sum(-1)


def one_hot_categorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return categorical(p._categorical, q._categorical)


def continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    slope = p.mean * (p.logits - q.logits)
    return slope + p._log_norm() + plugrad.log1p(-p.probs) - q._log_norm() - plugrad.log1p(-q.probs)


def dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    parts = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    slope = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    moved = ((p.concentration - q.concentration) * slope).sum(-1)
    return total_p.lgamma() - total_q.lgamma() - parts + moved


def exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


def exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence of the log normalizers.

    Source: Nielsen and Nock, Entropies and Cross-entropies of Exponential Families, 2010.
    """
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    natural_p = [n.detach().requires_grad_() for n in p._natural_params]
    natural_q = q._natural_params
    log_normalizer = p._log_normalizer(*natural_p)
    grads = plugrad.autograd.grad(log_normalizer.sum(), natural_p, create_graph=True)
    found = q._log_normalizer(*natural_q) - log_normalizer
    batch = found.dim()
    for of_p, of_q, grad in zip(natural_p, natural_q, grads, strict=True):
        term = (of_q - of_p) * grad
        found = found - sum_rightmost(term, term.dim() - batch)
    return found


def gamma(p: Gamma, q: Gamma) -> Tensor:
    return (
        q.concentration * (p.rate / q.rate).log()
        + plugrad.lgamma(q.concentration) - plugrad.lgamma(p.concentration)
        + (p.concentration - q.concentration) * plugrad.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )  # fmt: skip


def gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    moved, distance = p.loc / q.scale, q.loc / q.scale
    slope = ratio.log() + distance - moved
    return (
        -slope + ratio * euler_constant
        + plugrad.exp(distance + plugrad.lgamma(1 + ratio) - moved) - (1 + euler_constant)
    )  # fmt: skip


def geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - plugrad.log1p(-q.probs) / p.probs - q.logits


def half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return kl_divergence(p.base_dist, q.base_dist)


def laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * plugrad.exp(-distance / p.scale) - 1


def normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    distance = ((p.loc - q.loc) / q.scale).square()
    return 0.5 * (ratio + distance - 1 - ratio.log())


def _trace_of_quotient(factor: Tensor, root: Tensor) -> Tensor:
    """The trace of (factor factor^T)^-1 root root^T."""
    return plugrad.linalg.solve_triangular(factor, root, upper=False).square().sum((-2, -1))


def _check_events(p: Any, q: Any, names: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {names} with different event shapes cannot be computed"
        )


def multivariate_normal(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_events(p, q, "Multivariate Normals")
    factor_p, factor_q = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    n = p.event_shape[0]
    batch = plugrad.broadcast_shapes(factor_q.shape[:-2], factor_p.shape[:-2])
    trace = _trace_of_quotient(factor_q.expand((*batch, n, n)), factor_p.expand((*batch, n, n)))
    distance = batch_mahalanobis(factor_q, q.loc - p.loc)
    return half_log_det(factor_q) - half_log_det(factor_p) + 0.5 * (trace + distance - n)


def _distance_to_low_rank(q: LowRankMultivariateNormal, loc: Tensor) -> Tensor:
    """(q.loc - loc)^T q.precision (q.loc - loc), computed from the capacitance."""
    diagonal = q._unbroadcasted_cov_diag
    scaled = q._unbroadcasted_cov_factor.mT / diagonal.unsqueeze(-2)
    difference = q.loc - loc
    along = plugrad.matmul(scaled, difference.unsqueeze(-1)).squeeze(-1)
    alone = (difference.square() / diagonal).sum(-1)
    return alone - batch_mahalanobis(q._capacitance_tril, along)


def _trace_over_low_rank(q: LowRankMultivariateNormal, roots: list[Tensor]) -> Tensor:
    """The trace of q.precision times the sum of root root^T."""
    diagonal = q._unbroadcasted_cov_diag.unsqueeze(-1)
    scaled = q._unbroadcasted_cov_factor.mT / diagonal.mT
    inner = plugrad.linalg.solve_triangular(q._capacitance_tril, scaled, upper=False)
    found: Any = 0
    for root in roots:
        found = found + (root.square() / diagonal).sum((-2, -1))
        found = found - plugrad.matmul(inner, root).square().sum((-2, -1))
    return found


def _roots_of(p: LowRankMultivariateNormal) -> list[Tensor]:
    return [p._unbroadcasted_cov_factor, plugrad.diag_embed(p._unbroadcasted_cov_diag.sqrt())]


def low_rank_normal(p: LowRankMultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _check_events(p, q, "Low Rank Multivariate Normals")
    volume = q._log_det() - p._log_det()
    distance = _distance_to_low_rank(q, p.loc)
    trace = _trace_over_low_rank(q, _roots_of(p))
    return 0.5 * (volume + distance + trace - p.event_shape[0])


def normal_to_low_rank(p: MultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _check_events(p, q, "(Low Rank) Multivariate Normals")
    volume = q._log_det() - 2 * half_log_det(p._unbroadcasted_scale_tril)
    distance = _distance_to_low_rank(q, p.loc)
    trace = _trace_over_low_rank(q, [p._unbroadcasted_scale_tril])
    return 0.5 * (volume + distance + trace - p.event_shape[0])


def low_rank_to_normal(p: LowRankMultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_events(p, q, "(Low Rank) Multivariate Normals")
    factor = q._unbroadcasted_scale_tril
    volume = 2 * half_log_det(factor) - p._log_det()
    distance = batch_mahalanobis(factor, q.loc - p.loc)
    n = p.event_shape[0]
    trace: Any = 0
    for root in _roots_of(p):
        batch = plugrad.broadcast_shapes(factor.shape[:-2], root.shape[:-2])
        wide = root.expand((*batch, *root.shape[-2:]))
        trace = trace + _trace_of_quotient(factor.expand((*batch, n, n)), wide)
    return 0.5 * (volume + distance + trace - n)


def pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = p.scale / q.scale
    alphas = q.alpha / p.alpha
    found = q.alpha * ratio.log() - alphas.log() + alphas - 1
    return plugrad.where(p.scale < q.scale, math.inf, found)


def poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


def transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """Equal transforms do not change the divergence."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


def uniform(p: Uniform, q: Uniform) -> Tensor:
    found = ((q.high - q.low) / (p.high - p.low)).log()
    return plugrad.where((q.low > p.low) | (q.high < p.high), math.inf, found)


def cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    """Source: Chyzak and Nielsen, A closed-form formula for the Kullback-Leibler divergence between
    Cauchy distributions, 2019."""
    spread = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return spread.log() - (4 * p.scale * q.scale).log()


def independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    each = kl_divergence(p.base_dist, q.base_dist)
    return sum_rightmost(each, p.reinterpreted_batch_ndims)


def register() -> None:
    """Register them."""
    of_one_class: dict[type, Any] = {
        Bernoulli: bernoulli,
        Beta: beta,
        Binomial: binomial,
        Categorical: categorical,
        Cauchy: cauchy,
        ContinuousBernoulli: continuous_bernoulli,
        Dirichlet: dirichlet,
        Exponential: exponential,
        ExponentialFamily: exponential_family,
        Gamma: gamma,
        Geometric: geometric,
        Gumbel: gumbel,
        HalfNormal: half_normal,
        Independent: independent,
        Laplace: laplace,
        LowRankMultivariateNormal: low_rank_normal,
        MultivariateNormal: multivariate_normal,
        Normal: normal,
        OneHotCategorical: one_hot_categorical,
        Pareto: pareto,
        Poisson: poisson,
        TransformedDistribution: transformed,
        Uniform: uniform,
    }
    for kind, function in of_one_class.items():
        register_kl(kind, kind)(function)
    register_kl(MultivariateNormal, LowRankMultivariateNormal)(normal_to_low_rank)
    register_kl(LowRankMultivariateNormal, MultivariateNormal)(low_rank_to_normal)
