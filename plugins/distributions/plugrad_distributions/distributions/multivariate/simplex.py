"""Distributions of vectors that sum to one."""

from __future__ import annotations

from typing import Any

import plugrad
from plugrad import Tensor
from plugrad_distributions.distributions import constraints
from plugrad_distributions.distributions.distribution import ExponentialFamily

__all__ = ["Dirichlet"]


class _Drawn(plugrad.autograd.Function):
    """Dirichlet samples with gradients for the concentrations."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        x = plugrad._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        x, concentration = ctx.saved_tensors
        total = concentration.sum(-1, True).expand_as(concentration)
        grad = plugrad._dirichlet_grad(x, concentration, total)
        return grad * (grad_output - (x * grad_output).sum(-1, True))


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution, with density in proportion to the product of x**(concentration -
    1).

    `concentration` is (*batch, n).

    >>> import plugrad
    >>> plugrad.distributions.Dirichlet(plugrad.tensor([1.0, 2.0, 1.0])).mean
    tensor([0.2500, 0.5000, 0.2500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    event_dims = {"concentration": 1}

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        drawn: Tensor = _Drawn.apply(self.concentration.expand(self._extended_shape(sample_shape)))
        return drawn

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (
            plugrad.xlogy(self.concentration - 1.0, value).sum(-1)
            + plugrad.lgamma(self.concentration.sum(-1))
            - plugrad.lgamma(self.concentration).sum(-1)
        )

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        # Without an inner peak, the mode is a corner.
        corner = plugrad.zeros_like(mode).scatter(-1, mode.argmax(-1, True), 1.0)
        return plugrad.where((self.concentration < 1).all(-1, keepdim=True), corner, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def entropy(self) -> Tensor:
        count = self.concentration.size(-1)
        total = self.concentration.sum(-1)
        return (
            plugrad.lgamma(self.concentration).sum(-1)
            - plugrad.lgamma(total)
            - (count - total) * plugrad.digamma(total)
            - ((self.concentration - 1.0) * plugrad.digamma(self.concentration)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        (x,) = natural_params
        return x.lgamma().sum(-1) - plugrad.lgamma(x.sum(-1))
