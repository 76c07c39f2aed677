"""Normal distributions of vectors."""

from __future__ import annotations

import math
from typing import Any

import plugrad
from plugrad import Size, Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.distribution import Family
from plugrad_distributions.distributions.utils import lazy_property, standard_normal

__all__ = ["LowRankMultivariateNormal", "MultivariateNormal"]


def batch_mv(matrices: Tensor, vectors: Tensor) -> Tensor:
    """The products of matrices (*, n, n) and vectors (*, n), each with leading dimensions."""
    return plugrad.matmul(matrices, vectors.unsqueeze(-1)).squeeze(-1)


def batch_mahalanobis(factor: Tensor, x: Tensor) -> Tensor:
    """The squares x^T M^-1 x for M = factor factor^T, lower triangular (*, n, n), and x (*, n).

    The batch of x may have more dimensions than the factors' batch. Factors are not copied then:
    all vectors of one factor are columns of one triangular system.
    """
    n = x.size(-1)
    batch = plugrad.broadcast_shapes(factor.shape[:-2], x.shape[:-1])
    x = x.expand((*batch, n))
    more = len(batch) - (factor.dim() - 2)
    if more and all(
        size == wide for size, wide in zip(factor.shape[:-2], batch[more:], strict=True)
    ):
        # Dimensions that only x has become columns.
        columns = x.reshape(-1, *batch[more:], n).movedim(0, -1)
        solved = plugrad.linalg.solve_triangular(factor, columns, upper=False)
        return solved.square().sum(-2).movedim(-1, 0).reshape(batch)
    solved = plugrad.linalg.solve_triangular(factor, x.unsqueeze(-1), upper=False)
    return solved.square().sum((-2, -1))


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse of matrices.

    The factor of the matrix with reversed rows and columns gives a factor of the inverse.
    """
    reverse = plugrad.linalg.cholesky(plugrad.flip(precision, (-2, -1)))
    upper = plugrad.transpose(plugrad.flip(reverse, (-2, -1)), -2, -1)
    identity = plugrad.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return plugrad.linalg.solve_triangular(upper, identity, upper=False)


def half_log_det(factor: Tensor) -> Tensor:
    """Half the logarithm of the determinant of factor factor^T."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class ByMatrix(Family):
    """A distribution given by a covariance matrix, a precision matrix or a Cholesky factor.

    The other two are computed at first use. `_unbroadcasted_scale_tril` is the factor before
    broadcasting with other parameters.
    """

    _unbroadcasted_scale_tril: Tensor

    def _take_matrix(
        self, covariance: Tensor | None, precision: Tensor | None, factor: Tensor | None
    ) -> tuple[str, Tensor]:
        """The name and the value of the given matrix."""
        given = {
            "covariance_matrix": covariance,
            "precision_matrix": precision,
            "scale_tril": factor,
        }
        found = [(name, value) for name, value in given.items() if value is not None]
        if len(found) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        name, value = found[0]
        if value.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        return name, value

    def _factor(self, name: str, value: Tensor) -> None:
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = value
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = plugrad.linalg.cholesky(value)
        else:
            self._unbroadcasted_scale_tril = precision_to_scale_tril(value)

    def _copy_to(self, new: Any, batch_shape: Size) -> None:
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril

    def _matrix_shape(self) -> Size:
        n = self._unbroadcasted_scale_tril.shape[-1]
        return Size((*self._batch_shape, n, n))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return plugrad.matmul(factor, factor.mT).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return plugrad.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._matrix_shape())


class MultivariateNormal(ByMatrix):
    """The normal distribution of vectors with mean `loc` (*batch, n), and either a covariance
    matrix, a precision matrix or a lower triangular factor of the covariance.

    >>> import plugrad
    >>> normal = plugrad.distributions.MultivariateNormal(plugrad.zeros(2), plugrad.eye(2))
    >>> normal.log_prob(plugrad.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    event_dims = {"loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = self._take_matrix(covariance_matrix, precision_matrix, scale_tril)
        batch = plugrad.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        vars(self)[name] = matrix.expand((*batch, *matrix.shape[-2:]))
        self.loc = loc.expand((*batch, loc.shape[-1]))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._factor(name, matrix)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_scale_tril.square().sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        eps = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        distance = batch_mahalanobis(factor, value - self.loc)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + distance) - half_log_det(factor)

    def entropy(self) -> Tensor:
        factor = self._unbroadcasted_scale_tril
        n = self._event_shape[0]
        entropy = 0.5 * n * (1.0 + math.log(2 * math.pi)) + half_log_det(factor)
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy


class LowRankMultivariateNormal(Family):
    """The normal distribution of vectors with covariance W W^T + D: `cov_factor` W is (*batch, n,
    rank), and `cov_diag` (*batch, n) the diagonal of D.

    `log_prob` never makes a matrix (n, n): the determinant and the inverse come from the
    capacitance I + W^T D^-1 W, which is (rank, rank).

    Source: the matrix determinant lemma and the Woodbury identity.

    >>> import plugrad
    >>> loc, factor, diagonal = plugrad.zeros(2), plugrad.ones(2, 1), plugrad.ones(2)
    >>> normal = plugrad.distributions.LowRankMultivariateNormal(loc, factor, diagonal)
    >>> normal.covariance_matrix
    tensor([[2., 1.],
            [1., 2.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        batch = plugrad.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = loc.expand((*batch, *event_shape))
        self.cov_diag = cov_diag.expand((*batch, *event_shape))
        self.cov_factor = cov_factor.expand((*batch, *cov_factor.shape[-2:]))
        super().__init__(batch, event_shape, validate_args=validate_args)
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        scaled = cov_factor.mT / cov_diag.unsqueeze(-2)
        identity = plugrad.eye(cov_factor.shape[-1], dtype=scaled.dtype, device=scaled.device)
        self._capacitance_tril = plugrad.linalg.cholesky(
            plugrad.matmul(scaled, cov_factor) + identity
        )

    event_dims = {"loc": 1, "cov_factor": 2, "cov_diag": 1}

    def _copy_to(self, new: Any, batch_shape: Size) -> None:
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Any:
        """The diagonal of the covariance."""
        squares = self._unbroadcasted_cov_factor.square().sum(-1)
        spread = squares + self._unbroadcasted_cov_diag
        return spread.expand(self._batch_shape + self._event_shape)

    def _square(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower triangular factor of the covariance."""
        # W W^T + D = sqrt(D) (I + U U^T) sqrt(D)
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        inner = plugrad.matmul(scaled, scaled.mT)
        identity = plugrad.eye(inner.shape[-1], dtype=inner.dtype, device=inner.device)
        return self._square(root * plugrad.linalg.cholesky(inner + identity))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        diagonal = plugrad.diag_embed(self._unbroadcasted_cov_diag)
        return self._square(plugrad.matmul(factor, factor.mT) + diagonal)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, D^-1 - D^-1 W (I + W^T D^-1 W)^-1 W^T D^-1."""
        diagonal = self._unbroadcasted_cov_diag
        scaled = self._unbroadcasted_cov_factor.mT / diagonal.unsqueeze(-2)
        inner = plugrad.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self._square(
            plugrad.diag_embed(diagonal.reciprocal()) - plugrad.matmul(inner.mT, inner)
        )

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        along = standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        alone = standard_normal(shape, self.loc)
        return (
            self.loc
            + batch_mv(self._unbroadcasted_cov_factor, along)
            + self._unbroadcasted_cov_diag.sqrt() * alone
        )

    def _log_det(self) -> Tensor:
        inner = 2 * half_log_det(self._capacitance_tril)
        return inner + self._unbroadcasted_cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        difference = value - self.loc
        factor, diagonal = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        scaled = batch_mv(factor.mT / diagonal.unsqueeze(-2), difference)
        alone = (difference.square() / diagonal).sum(-1)
        distance = alone - batch_mahalanobis(self._capacitance_tril, scaled)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        entropy = 0.5 * (n * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
