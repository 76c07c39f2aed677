"""Distributions of transformed values."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Size, Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.combined.independent import Independent
from plugrad_distributions.distributions.distribution import Distribution
from plugrad_distributions.distributions.transforms import ComposeTransform, Transform
from plugrad_distributions.distributions.utils import sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of the values of `base_distribution` after `transforms`, the first one
    first.

    >>> import plugrad
    >>> from plugrad.distributions import ExpTransform, Normal, TransformedDistribution
    >>> TransformedDistribution(Normal(0.0, 1.0), ExpTransform()).log_prob(plugrad.tensor(1.0))
    tensor(-0.9189)
    """

    base_dist: Any
    arg_constraints: dict[str, constraints.Constraint] = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Any,
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(part, Transform) for part in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        dims = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        if len(shape) < transform.domain.event_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{transform.domain.event_dim}, but got {Size(shape)}."
            )
        forward = transform.forward_shape(shape)
        expanded = transform.inverse_shape(forward)
        if tuple(shape) != tuple(expanded):
            batch = expanded[: len(expanded) - dims]
            base_distribution = base_distribution.expand(batch)
        more = transform.domain.event_dim - dims
        if more > 0:
            base_distribution = Independent(base_distribution, more)
        self.base_dist = base_distribution
        # Event dimensions that the transforms do not need remain event dimensions.
        kept = transform.codomain.event_dim + max(dims - transform.domain.event_dim, 0)
        cut = len(forward) - kept
        super().__init__(forward[:cut], forward[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = Size(batch_shape)
        shape = batch_shape + self.event_shape
        for part in reversed(self.transforms):
            shape = part.inverse_shape(shape)
        batch = shape[: len(shape) - len(self.base_dist.event_shape)]
        new.base_dist = self.base_dist.expand(batch)
        new.transforms = self.transforms
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def has_rsample(self) -> Any:
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with plugrad.no_grad():
            x = self.base_dist.sample(sample_shape)
            for part in self.transforms:
                x = part(x)
            return x

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        x = self.base_dist.rsample(sample_shape)
        for part in self.transforms:
            x = part(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        dims = len(self.event_shape)
        found: Any = 0.0
        y = value
        for part in reversed(self.transforms):
            x = part.inv(y)
            dims += part.domain.event_dim - part.codomain.event_dim
            log_det = part.log_abs_det_jacobian(x, y)
            found = found - sum_rightmost(log_det, dims - part.domain.event_dim)
            y = x
        more = dims - len(self.base_dist.event_shape)
        return found + sum_rightmost(self.base_dist.log_prob(y), more)

    def _monotonized(self, value: Tensor) -> Tensor:
        """The probability of values up to this one; 1 minus it for decreasing transforms."""
        sign: Any = 1
        for part in self.transforms:
            sign = sign * part.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for part in reversed(self.transforms):
            value = part.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonized(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        value = self.base_dist.icdf(self._monotonized(value))
        for part in self.transforms:
            value = part(value)
        return value
