"""Probability distributions, by the names of `torch.distributions`: `plugrad.distributions`.

A distribution has a batch of parameters; its samples have the shape
`sample_shape + batch_shape + event_shape`. `rsample` gives samples with gradients where the
distribution has them (`has_rsample`), `sample` without.

>>> import plugrad
>>> from plugrad.distributions import Normal, kl_divergence
>>> loc = plugrad.tensor([0.0, 1.0], requires_grad=True)
>>> normal = Normal(loc, 2.0)
>>> normal.rsample((3,)).shape
plugrad.Size([3, 2])
>>> normal.log_prob(plugrad.zeros(2)).sum().backward()
>>> loc.grad
tensor([ 0.0000, -0.2500])
"""

from __future__ import annotations

from plugrad_distributions.distributions import constraints, kl, transforms, utils
from plugrad_distributions.distributions.combined.independent import Independent
from plugrad_distributions.distributions.combined.mixture import MixtureSameFamily
from plugrad_distributions.distributions.combined.transformed import TransformedDistribution
from plugrad_distributions.distributions.constraint_registry import biject_to, transform_to
from plugrad_distributions.distributions.distribution import Distribution, ExponentialFamily
from plugrad_distributions.distributions.kl import kl_divergence, register_kl
from plugrad_distributions.distributions.multivariate.categorical import (
    Categorical,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from plugrad_distributions.distributions.multivariate.matrices import LKJCholesky, Wishart
from plugrad_distributions.distributions.multivariate.normal import (
    LowRankMultivariateNormal,
    MultivariateNormal,
)
from plugrad_distributions.distributions.multivariate.relaxed import (
    LogisticNormal,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from plugrad_distributions.distributions.multivariate.simplex import Dirichlet
from plugrad_distributions.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from plugrad_distributions.distributions.univariate.circular import VonMises
from plugrad_distributions.distributions.univariate.counts import (
    Bernoulli,
    Binomial,
    Geometric,
    NegativeBinomial,
    Poisson,
)
from plugrad_distributions.distributions.univariate.extremes import (
    GeneralizedPareto,
    Gumbel,
    Pareto,
    Weibull,
)
from plugrad_distributions.distributions.univariate.gamma import (
    Chi2,
    Exponential,
    FisherSnedecor,
    Gamma,
)
from plugrad_distributions.distributions.univariate.location_scale import (
    Cauchy,
    Laplace,
    Normal,
    StudentT,
    Uniform,
)
from plugrad_distributions.distributions.univariate.transformed import (
    HalfCauchy,
    HalfNormal,
    InverseGamma,
    Kumaraswamy,
    LogNormal,
)
from plugrad_distributions.distributions.univariate.unit_interval import Beta, ContinuousBernoulli

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraints",
    "identity_transform",
    "kl",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
    "utils",
]
