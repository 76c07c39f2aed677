"""Kernels that draw from distributions by CuPy's generator; the numbers are CuPy's, not PyTorch's.

CuPy does not check parameters. Those outside a distribution's range are replaced for the draw, and
their results are written afterwards.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from plugrad_cuda.kernels.family import Family, scalar
from plugrad_cuda.kernels.namespace import Array, Kernel

_WIDE = np.dtype(np.float64)


class Distributions(Family):
    """Cauchy, log-normal, geometric, Poisson, binomial, gamma and Dirichlet distributions."""

    def kernels(self) -> dict[str, Kernel]:
        return {
            "cauchy_": self.cauchy_,
            "log_normal_": self.log_normal_,
            "geometric_": self.geometric_,
            "poisson": self.poisson,
            "binomial": self.binomial,
            "_standard_gamma": self.standard_gamma,
            "_sample_dirichlet": self.sample_dirichlet,
        }

    def write(self, array: Array, values: Array) -> Array:
        self.xp.copyto(array, values, casting="unsafe")
        return array

    def cauchy_(self, array: Array, median: float, sigma: float, generator: Any) -> Array:
        drawn = self.xp.asarray(generator.rng.random(array.shape, dtype=_WIDE))
        return self.write(array, self.xp.tan((drawn - 0.5) * math.pi) * sigma + median)

    def log_normal_(self, array: Array, mean: float, std: float, generator: Any) -> Array:
        drawn = self.xp.asarray(generator.rng.standard_normal(array.shape, dtype=_WIDE))
        return self.write(array, self.xp.exp(drawn * std + mean))

    def geometric_(self, array: Array, p: float, generator: Any) -> Array:
        # Exponential waiting times, rounded up: CuPy's integers would have to be cast anyway.
        drawn = self.xp.asarray(generator.rng.standard_exponential(array.shape))
        trials = self.xp.ceil(drawn / -math.log1p(-p))
        return self.write(array, self.xp.maximum(trials, 1.0))

    def poisson(self, rates: Array, generator: Any) -> Array:
        wide = rates.astype(_WIDE)
        is_rate = wide >= 0
        if self.ns.may_wait() and not bool(self.xp.all(is_rate)):
            raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
        drawn = self.xp.asarray(generator.rng.poisson(self.xp.where(is_rate, wide, 0.0)))
        return drawn.astype(rates.dtype)

    def binomial(self, count: Array, prob: Array, generator: Any) -> Array:
        trials, chances = count.astype(_WIDE), prob.astype(_WIDE)
        drawing = (trials > 0) & (chances > 0) & (chances < 1)
        drawn = generator.rng.binomial(
            self.xp.where(drawing, trials, 0.0).astype(np.int64),
            self.xp.where(drawing, chances, 0.5),
        )
        certain = self.xp.where((chances >= 1) & (trials > 0), trials, 0.0)
        known = self.xp.where(drawing, self.xp.asarray(drawn).astype(_WIDE), certain)
        # The range of one parameter decides before the other one is looked at.
        counting = self.xp.isnan(trials) & (chances > 0) & (chances < 1)
        unknown = counting | (self.xp.isnan(chances) & (trials > 0))
        return self.xp.where(unknown, math.nan, known).astype(count.dtype)

    def gamma(self, alpha: Array, generator: Any) -> Array:
        """In float64: 0 for the shape 0, nan for what is not a shape."""
        drawn = generator.rng.standard_gamma(self.xp.where(alpha > 0, alpha, 1.0))
        others = self.xp.where(alpha == 0, 0.0, math.nan)
        return self.xp.where(alpha > 0, self.xp.asarray(drawn), others)

    def standard_gamma(self, alpha: Array, generator: Any) -> Array:
        drawn = self.gamma(alpha.astype(_WIDE), generator).astype(alpha.dtype)
        return self.xp.maximum(drawn, scalar(np.finfo(alpha.dtype).tiny, alpha.dtype))

    def sample_dirichlet(self, alpha: Array, generator: Any) -> Array:
        drawn = self.xp.maximum(
            self.gamma(alpha.astype(_WIDE), generator), scalar(np.finfo(_WIDE).tiny, _WIDE)
        )
        total = self.xp.sum(drawn, axis=-1, keepdims=True) if alpha.ndim else drawn
        shares = (drawn / total).astype(alpha.dtype)
        one = np.ones((), alpha.dtype)
        below = np.nextafter(one, np.zeros((), alpha.dtype))
        least = scalar(np.finfo(alpha.dtype).tiny, alpha.dtype)
        return self.xp.minimum(self.xp.maximum(shares, least), below[()])
