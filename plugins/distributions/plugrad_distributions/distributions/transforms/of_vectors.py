"""Transforms of vectors and matrices, and of parts of a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plugrad
from plugrad import Size, Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.transforms.base import Transform
from plugrad_distributions.distributions.transforms.elementwise import _SameClass
from plugrad_distributions.distributions.utils import (
    sum_rightmost,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)

__all__ = [
    "CatTransform",
    "CorrCholeskyTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
]


def _longer(shape: Any, by: int) -> Size:
    """A shape with a longer or shorter last dimension."""
    if len(shape) < 1:
        raise ValueError("Too few dimensions on input")
    return Size((*shape[:-1], shape[-1] + by))


class SoftmaxTransform(_SameClass):
    """Vectors to the simplex by softmax, which drops their sum; the inverse is the logarithm.

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> transforms.SoftmaxTransform()(plugrad.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        return x.softmax(-1)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        return _longer(shape, 0)

    def inverse_shape(self, shape: Any) -> Any:
        return _longer(shape, 0)


class StickBreakingTransform(_SameClass):
    """Vectors to the simplex with one more dimension, by stick breaking: the sigmoid of each
    element is the fraction to break off the rest of the stick.

    Source: Stan Reference Manual, unit simplex.

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> transforms.StickBreakingTransform()(plugrad.tensor([0.0, 1.0]))
    tensor([0.3333, 0.4874, 0.1793])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x: Any) -> Any:
        offset = x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)
        z = _sigmoid(x - offset.log())
        left = (1 - z).cumprod(-1)
        one = x.new_ones((*x.shape[:-1], 1))
        return plugrad.cat([z, one], -1) * plugrad.cat([one, left], -1)

    def _inverse(self, y: Any) -> Any:
        front = y[..., :-1]
        offset = y.shape[-1] - y.new_ones(front.shape[-1]).cumsum(-1)
        left = 1 - front.cumsum(-1)
        left = plugrad.clamp(left, min=plugrad.finfo(y.dtype).tiny)
        return front.log() - left.log() + offset.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        offset = x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)
        x = x - offset.log()
        return (-x + plugrad.log_sigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return _longer(shape, 1)

    def inverse_shape(self, shape: Any) -> Any:
        return _longer(shape, -1)


def _sigmoid(x: Tensor) -> Tensor:
    """The sigmoid, clamped away from 0 and 1."""
    found = plugrad.finfo(x.dtype)
    return plugrad.clamp(plugrad.sigmoid(x), min=found.tiny, max=1.0 - found.eps)


class LowerCholeskyTransform(_SameClass):
    """Matrices to lower triangular ones, with the exponential of the diagonal.

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> transforms.LowerCholeskyTransform()(plugrad.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_SameClass):
    """Matrices to positive definite ones, through a Cholesky factor.

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> transforms.PositiveDefiniteTransform()(plugrad.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(plugrad.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Vectors of n (n - 1) / 2 numbers to Cholesky factors (n, n) of correlation matrices.

    The elements' hyperbolic tangents are canonical partial correlations; their squares break the
    sticks.

    Source: Lewandowski, Kurowicka and Joe, 2009; Stan Reference Manual, Cholesky factors of
    correlation matrices.

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> transforms.CorrCholeskyTransform()(plugrad.tensor([0.5]))
    tensor([[1.0000, 0.0000],
            [0.4621, 0.8868]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        x = plugrad.tanh(x)
        eps = plugrad.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        # The rest of a row's length of one.
        left = (1 - r.square()).sqrt().cumprod(-1)
        identity = plugrad.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        before = plugrad.cat([plugrad.ones_like(left[..., :1]), left[..., :-1]], -1)
        return (r + identity) * before

    def _inverse(self, y: Any) -> Any:
        # The remaining squares before each element.
        left = 1 - (y * y).cumsum(-1)
        before = plugrad.cat([plugrad.ones_like(left[..., :1]), left[..., :-1]], -1)
        part = tril_matrix_to_vec(y, diag=-1)
        t = part / tril_matrix_to_vec(before, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        left = 1 - (y * y).cumsum(-1)
        below = tril_matrix_to_vec(left, diag=-2)
        of_sticks = 0.5 * below.log().sum(-1)
        of_tanh = -2 * (x + plugrad.softplus(-2 * x) - math.log(2.0)).sum(-1)
        return of_sticks + of_tanh

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        count = shape[-1]
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        n = shape[-1]
        return Size((*shape[:-2], n * (n - 1) // 2))


class _OfParts(Transform):
    """Transforms of the parts of a tensor along a dimension."""

    transforms: list[Transform]
    dim: int

    def _take(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        if not all(isinstance(part, Transform) for part in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [part.with_cache(cache_size) for part in tseq]
        self.transforms = list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> Any:
        return all(part.bijective for part in self.transforms)

    def _check(self, x: Tensor) -> None:
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(f"dim {self.dim} is out of range for a tensor of shape {x.shape}")


class CatTransform(_OfParts):
    """Transforms of parts with `lengths` along a dimension, by default of length 1 each.

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> parts = [transforms.ExpTransform(), transforms.AffineTransform(1.0, 2.0)]
    >>> transforms.CatTransform(parts, dim=0, lengths=[1, 2])(plugrad.ones(3))
    tensor([2.7183, 3.0000, 3.0000])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(cache_size=cache_size)
        self._take(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths has to have a length for each of the {len(self.transforms)} transforms, "
                f"got {len(self.lengths)}"
            )

    @property
    def event_dim(self) -> int:
        return max(part.event_dim for part in self.transforms)

    @property
    def length(self) -> int:
        """The length of all parts together."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x: Tensor) -> list[Tensor]:
        self._check(x)
        if x.size(self.dim) != self.length:
            raise AssertionError(
                f"the size of dim {self.dim} has to be {self.length}, got {x.size(self.dim)}"
            )
        return list(x.split(self.lengths, self.dim))

    def _call(self, x: Any) -> Any:
        parts = zip(self.transforms, self._parts(x), strict=True)
        return plugrad.cat([part(taken) for part, taken in parts], dim=self.dim)

    def _inverse(self, y: Any) -> Any:
        parts = zip(self.transforms, self._parts(y), strict=True)
        return plugrad.cat([part.inv(taken) for part, taken in parts], dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        each = []
        for part, before, after in zip(
            self.transforms, self._parts(x), self._parts(y), strict=True
        ):
            found = part.log_abs_det_jacobian(before, after)
            if part.event_dim < self.event_dim:
                found = sum_rightmost(found, self.event_dim - part.event_dim)
            each.append(found)
        dim = self.dim if self.dim < 0 else self.dim - x.dim()
        dim = dim + self.event_dim
        if dim < 0:
            return plugrad.cat(each, dim=dim)
        total: Any = sum(each)
        return total

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([part.domain for part in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([part.codomain for part in self.transforms], self.dim, self.lengths)


class StackTransform(_OfParts):
    """Transforms of the slices along a dimension.

    >>> import plugrad
    >>> from plugrad.distributions import transforms
    >>> parts = [transforms.ExpTransform(), transforms.AffineTransform(1.0, 2.0)]
    >>> transforms.StackTransform(parts)(plugrad.ones(2, 3))
    tensor([[2.7183, 2.7183, 2.7183],
            [3.0000, 3.0000, 3.0000]])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self._take(tseq, dim, cache_size)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, x: Tensor) -> list[Tensor]:
        self._check(x)
        if x.size(self.dim) != len(self.transforms):
            raise AssertionError(
                f"the size of dim {self.dim} has to be {len(self.transforms)}, got "
                f"{x.size(self.dim)}"
            )
        return list(x.unbind(self.dim))

    def _call(self, x: Any) -> Any:
        parts = zip(self.transforms, self._slices(x), strict=True)
        return plugrad.stack([part(taken) for part, taken in parts], dim=self.dim)

    def _inverse(self, y: Any) -> Any:
        parts = zip(self.transforms, self._slices(y), strict=True)
        return plugrad.stack([part.inv(taken) for part, taken in parts], dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        parts = zip(self.transforms, self._slices(x), self._slices(y), strict=True)
        each = [part.log_abs_det_jacobian(before, after) for part, before, after in parts]
        return plugrad.stack(each, dim=self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([part.domain for part in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([part.codomain for part in self.transforms], self.dim)
