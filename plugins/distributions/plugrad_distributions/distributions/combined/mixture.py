"""Mixtures of the distributions of one batch."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Size, Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.distribution import Distribution
from plugrad_distributions.distributions.multivariate.categorical import Categorical

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of the distributions along the last batch dimension of `component_distribution`,
    each with the probability that `mixture_distribution` gives it.

    >>> import plugrad
    >>> from plugrad.distributions import Categorical, MixtureSameFamily, Normal
    >>> both = Normal(plugrad.tensor([-1.0, 1.0]), 1.0)
    >>> MixtureSameFamily(Categorical(plugrad.ones(2)), both).mean
    tensor(0.)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "The Mixture distribution needs to be an instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of "
                "torch.distributions.Distribution"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        batch = component_distribution.batch_shape
        for size, other in zip(
            reversed(mixture_distribution.batch_shape), reversed(batch[:-1]), strict=False
        ):
            if size not in (1, other) and other != 1:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_distribution.batch_shape}) is "
                    "not compatible with `component_distribution.batch_shape` "
                    f"({component_distribution.batch_shape})"
                )
        weights = mixture_distribution.logits.shape[-1]
        count = batch[-1]
        if count not in (1, weights):
            raise ValueError(
                f"`mixture_distribution component` ({weights}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({count})"
            )
        self._num_component = weights
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch[:-1], event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        batch_shape = Size(batch_shape)
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._component_distribution = self._component_distribution.expand(
            (*batch_shape, self._num_component)
        )
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution that selects a component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components, along the last batch dimension."""
        return self._component_distribution

    def _weights(self) -> Tensor:
        probs = self._mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * self._event_ndims)

    @property
    def mean(self) -> Tensor:
        means = self._component_distribution.mean
        return (self._weights() * means).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        # The mean of the variances plus the variance of the means.
        dim = -1 - self._event_ndims
        weights = self._weights()
        inside = (weights * self._component_distribution.variance).sum(dim)
        apart = self._component_distribution.mean - self.mean.unsqueeze(dim)
        return inside + (weights * apart.square()).sum(dim)

    def _to_components(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def cdf(self, value: Tensor) -> Tensor:
        each = self._component_distribution.cdf(self._to_components(value))
        return (each * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        each = self._component_distribution.log_prob(self._to_components(value))
        weights = plugrad.log_softmax(self._mixture_distribution.logits, dim=-1)
        return plugrad.logsumexp(each + weights, dim=-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with plugrad.no_grad():
            shape = Size(sample_shape)
            chosen = self._mixture_distribution.sample(shape)
            each = self._component_distribution.sample(shape)
            dim = len(shape) + len(self.batch_shape)
            places = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1))
            places = places.expand((*chosen.shape, 1, *self.event_shape))
            return each.gather(dim, places).squeeze(dim)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self._mixture_distribution!r},\n"
            f"  {self._component_distribution!r})"
        )
