"""Distributions of matrices."""

from __future__ import annotations

import math
import warnings
from typing import Any

import plugrad
from plugrad import Size, Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.distribution import ExponentialFamily, Family
from plugrad_distributions.distributions.multivariate.normal import ByMatrix, half_log_det
from plugrad_distributions.distributions.univariate.gamma import Chi2
from plugrad_distributions.distributions.univariate.unit_interval import Beta
from plugrad_distributions.distributions.utils import standard_normal

__all__ = ["LKJCholesky", "Wishart"]


class LKJCholesky(Family):
    """Lower Cholesky factors of correlation matrices (dim, dim), with density in proportion to
    their determinant to the power `concentration - 1`: with 1 all are equally likely.

    Source: Lewandowski, Kurowicka and Joe, Generating random correlation matrices based on vines
    and extended onion method, Journal of Multivariate Analysis 100 (2009).

    >>> import plugrad
    >>> plugrad.distributions.LKJCholesky(3, 0.5).sample().shape
    plugrad.Size([3, 3])
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    event_dims = {"concentration": 0}

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        given = plugrad.as_tensor(concentration, dtype=None)
        if not given.is_floating_point():
            given = given.to(plugrad.get_default_dtype())
        self.concentration = given
        # The squared length of each row's part below the diagonal: the onion method adds rows one
        # by one.
        marginal = given + 0.5 * (dim - 2)
        offset = plugrad.arange(dim - 1, dtype=given.dtype, device=given.device)
        offset = plugrad.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(given.size(), (dim, dim), validate_args)

    def _copy_to(self, new: Any, batch_shape: Size) -> None:
        new.dim = self.dim
        new._beta = self._beta.expand((*batch_shape, self.dim))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with plugrad.no_grad():
            reach = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            normal = standard_normal(shape, self.concentration).tril(-1)
            rows = normal / normal.norm(dim=-1, keepdim=True)
            # The first row has no direction.
            rows[..., 0, :].fill_(0.0)
            below = plugrad.sqrt(reach) * rows
            tiny = plugrad.finfo(below.dtype).tiny
            diagonal = plugrad.clamp(1 - below.square().sum(-1), min=tiny).sqrt()
            return below + plugrad.diag_embed(diagonal)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = plugrad.arange(2, self.dim + 1, device=self.concentration.device)
        power = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = (power * diagonal.log()).sum(-1)
        rest = self.dim - 1
        alpha = self.concentration + 0.5 * rest
        normalizer = (
            0.5 * rest * math.log(math.pi)
            + plugrad.mvlgamma(alpha - 0.5, rest)
            - plugrad.lgamma(alpha) * rest
        )
        return unnormalized - normalizer


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of the logarithm of the multivariate gamma function."""
    halves = plugrad.arange(p, dtype=x.dtype, device=x.device) / 2
    return plugrad.digamma(x.unsqueeze(-1) - halves).sum(-1)


class Wishart(ByMatrix, ExponentialFamily):
    """The Wishart distribution of positive definite matrices (n, n): the sums of `df` products
    x x^T of normal vectors with one covariance. `df` must be greater than n - 1.

    Source: Sawyer, Wishart Distributions and Inverse-Wishart Sampling, 2007.

    >>> import plugrad
    >>> plugrad.distributions.Wishart(plugrad.tensor(3.0), plugrad.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    event_dims = {"df": 0, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = self._take_matrix(covariance_matrix, precision_matrix, scale_tril)
        if not isinstance(df, Tensor):
            df = plugrad.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = plugrad.broadcast_shapes(matrix.shape[:-2], df.shape)
        event_shape = matrix.shape[-2:]
        self.df = df.expand(batch)
        vars(self)[name] = matrix.expand((*batch, *event_shape))
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}."
            )
        super().__init__(batch, event_shape, validate_args=validate_args)
        if self.df.lt(event_shape[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 "
                "< df < ndim.",
                stacklevel=2,
            )
        self._factor(name, matrix)
        self._take_chi2(batch)

    def _take_chi2(self, batch: Any) -> None:
        n = self._event_shape[-1]
        less = plugrad.arange(n, dtype=self.df.dtype, device=self.df.device)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - less.expand((*batch, n)))

    def _copy_to(self, new: Any, batch_shape: Size) -> None:
        super()._copy_to(new, batch_shape)
        new._dist_chi2 = self._dist_chi2.expand(batch_shape + self._event_shape[-1:])

    @property
    def mean(self) -> Tensor:
        return self.df.view(*self._batch_shape, 1, 1) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, math.nan)
        return factor.view(*self._batch_shape, 1, 1) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        matrix = self.covariance_matrix
        diagonal = matrix.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view(*self._batch_shape, 1, 1) * (matrix.square() + outer)

    def _bartlett(self, sample_shape: Size) -> Tensor:
        """Bartlett's decomposition: a lower triangular matrix of normal numbers, with square roots
        of chi-squared numbers on its diagonal."""
        n = self._event_shape[-1]
        tiny = plugrad.finfo(self.df.dtype).tiny
        diagonal = self._dist_chi2.rsample(sample_shape).clamp(min=tiny).sqrt()
        noise = plugrad.diag_embed(diagonal)
        rows, columns = plugrad.tril_indices(n, n, offset=-1, device=noise.device)
        shape = (*sample_shape, *self._batch_shape, n * (n - 1) // 2)
        noise[..., rows, columns] = plugrad.randn(shape, dtype=noise.dtype, device=noise.device)
        product = self._unbroadcasted_scale_tril @ noise
        return product @ product.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Draw matrices; those that rounding made singular are drawn again, at most
        `max_try_correction` times, by default 10."""
        if max_try_correction is None:
            max_try_correction = 10
        shape = Size(sample_shape)
        sample = self._bartlett(shape)
        singular = ~self.support.check(sample)
        if singular.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
            for _ in range(max_try_correction):
                again = self._bartlett(shape)
                sample = plugrad.where(singular[..., None, None], again, sample)
                singular = ~self.support.check(sample)
                if not singular.any():
                    break
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        df, n = self.df, self._event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        solved = plugrad.cholesky_solve(value, factor)
        return (
            -df * (n * math.log(2) / 2 + half_log_det(factor))
            - plugrad.mvlgamma(df / 2, p=n)
            + (df - n - 1) / 2 * plugrad.linalg.slogdet(value).logabsdet
            - solved.diagonal(dim1=-2, dim2=-1).sum(-1) / 2
        )

    def entropy(self) -> Tensor:
        df, n = self.df, self._event_shape[-1]
        return (
            (n + 1) * (n * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril))
            + plugrad.mvlgamma(df / 2, p=n)
            - (df - n - 1) / 2 * _mvdigamma(df / 2, n)
            + df * n / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        n = self._event_shape[-1]
        return -self.precision_matrix / 2, (self.df - n - 1) / 2

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        x, y = natural_params
        n = self._event_shape[-1]
        power = y + (n + 1) / 2
        return power * (
            -plugrad.linalg.slogdet(-2 * x).logabsdet + math.log(2) * n
        ) + plugrad.mvlgamma(power, p=n)
