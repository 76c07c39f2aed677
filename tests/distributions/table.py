"""Distributions with parameters that their tests share, and SciPy's name for those that it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Parameters = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A distribution, and parameters by name: lists become tensors.

    Attributes:
        scipy: from arrays of the parameters to the frozen distribution of SciPy.
    """

    name: str
    parameters: Parameters
    scipy: Callable[..., Any] | None = None

    def __str__(self) -> str:
        return f"{self.name}-{'-'.join(self.parameters)}"

    def make(
        self, library: Any, distributions: Any, *, grad: bool = False, **options: Any
    ) -> tuple[Any, list[Any]]:
        """The distribution, and its parameters that are tensors."""
        given: Parameters = {}
        tensors = []
        for name, value in self.parameters.items():
            if isinstance(value, int):
                given[name] = value
                continue
            given[name] = library.tensor(value, dtype=library.float64)
            if grad and name not in ("total_count", "temperature"):
                tensors.append(given[name].requires_grad_())
        return getattr(distributions, self.name)(**given, **options), tensors


def _stats() -> Any:
    from scipy import stats

    return stats


_PAIR = {"loc": [0.0, 1.0], "scale": [1.0, 2.0]}
_TWO = {"concentration1": [0.5, 2.0], "concentration0": [1.5, 3.0]}
_ROWS = [[0.3, 0.6, 0.1], [0.2, 0.2, 0.6]]
_COVARIANCE = [[2.0, 0.5], [0.5, 1.0]]

CASES = [
    Case("Bernoulli", {"probs": [0.3, 0.6]}, lambda probs: _stats().bernoulli(probs)),
    Case("Bernoulli", {"logits": [-0.3, 1.0]}),
    Case(
        "Beta",
        _TWO,
        lambda concentration1, concentration0: _stats().beta(concentration1, concentration0),
    ),
    Case(
        "Binomial",
        {"total_count": [4.0, 4.0], "probs": [0.3, 0.6]},
        lambda total_count, probs: _stats().binom(total_count, probs),
    ),
    Case("Binomial", {"total_count": [4.0, 4.0], "logits": [0.3, -0.6]}),
    Case("Categorical", {"probs": _ROWS}),
    Case("Categorical", {"logits": _ROWS}),
    Case("Cauchy", _PAIR, lambda loc, scale: _stats().cauchy(loc, scale)),
    Case("Chi2", {"df": [1.0, 3.5]}, lambda df: _stats().chi2(df)),
    Case("ContinuousBernoulli", {"probs": [0.3, 0.5, 0.9]}),
    Case("ContinuousBernoulli", {"logits": [0.3, 0.0, -2.0]}),
    Case("Dirichlet", {"concentration": [[0.5, 1.0, 2.0], [3.0, 3.0, 3.0]]}),
    Case("Exponential", {"rate": [0.5, 2.0]}, lambda rate: _stats().expon(scale=1 / rate)),
    Case(
        "FisherSnedecor",
        {"df1": [3.0, 5.0], "df2": [4.5, 7.0]},
        lambda df1, df2: _stats().f(df1, df2),
    ),
    Case(
        "Gamma",
        {"concentration": [0.5, 2.0], "rate": [1.5, 3.0]},
        lambda concentration, rate: _stats().gamma(concentration, scale=1 / rate),
    ),
    Case(
        "GeneralizedPareto",
        {"loc": [0.0, 1.0, 2.0], "scale": [1.0, 2.0, 0.5], "concentration": [0.2, 0.1, -0.3]},
        lambda loc, scale, concentration: _stats().genpareto(concentration, loc, scale),
    ),
    Case("Geometric", {"probs": [0.3, 0.6]}, lambda probs: _stats().geom(probs, loc=-1)),
    Case("Geometric", {"logits": [-0.3, 1.0]}),
    Case("Gumbel", _PAIR, lambda loc, scale: _stats().gumbel_r(loc, scale)),
    Case("HalfCauchy", {"scale": [1.0, 2.0]}, lambda scale: _stats().halfcauchy(scale=scale)),
    Case("HalfNormal", {"scale": [1.0, 2.0]}, lambda scale: _stats().halfnorm(scale=scale)),
    Case(
        "InverseGamma",
        {"concentration": [0.5, 2.5], "rate": [1.5, 3.0]},
        lambda concentration, rate: _stats().invgamma(concentration, scale=rate),
    ),
    Case("Kumaraswamy", _TWO),
    Case("LKJCholesky", {"dim": 3, "concentration": [0.7, 2.0]}),
    Case("Laplace", _PAIR, lambda loc, scale: _stats().laplace(loc, scale)),
    Case(
        "LogNormal",
        {"loc": [0.0, 1.0], "scale": [1.0, 0.5]},
        lambda loc, scale: _stats().lognorm(scale, scale=_exp(loc)),
    ),
    Case("LogisticNormal", {"loc": [[0.0, 1.0], [0.5, 0.2]], "scale": [[1.0, 0.5], [2.0, 1.0]]}),
    Case(
        "LowRankMultivariateNormal",
        {
            "loc": [[0.0, 1.0, 2.0]],
            "cov_factor": [[1.0], [2.0], [0.5]],
            "cov_diag": [1.0, 2.0, 3.0],
        },
    ),
    Case("Multinomial", {"total_count": 4, "probs": _ROWS}),
    Case(
        "MultivariateNormal",
        {"loc": [[0.0, 1.0], [2.0, 3.0]], "covariance_matrix": _COVARIANCE},
    ),
    Case("MultivariateNormal", {"loc": [0.0, 1.0], "precision_matrix": _COVARIANCE}),
    Case(
        "MultivariateNormal",
        {"loc": [0.0, 1.0], "scale_tril": [[[2.0, 0.0], [0.5, 1.0]], [[1.0, 0.0], [0.5, 3.0]]]},
    ),
    Case(
        "NegativeBinomial",
        {"total_count": [4.0, 2.0], "probs": [0.3, 0.6]},
        lambda total_count, probs: _stats().nbinom(total_count, 1 - probs),
    ),
    Case("NegativeBinomial", {"total_count": [4.0, 1.0], "logits": [0.3, -0.6]}),
    Case("Normal", _PAIR, lambda loc, scale: _stats().norm(loc, scale)),
    Case("OneHotCategorical", {"probs": _ROWS}),
    Case("OneHotCategoricalStraightThrough", {"probs": _ROWS}),
    Case(
        "Pareto",
        {"scale": [1.0, 2.0], "alpha": [1.5, 3.0]},
        lambda scale, alpha: _stats().pareto(alpha, scale=scale),
    ),
    Case("Poisson", {"rate": [0.5, 2.0]}, lambda rate: _stats().poisson(rate)),
    Case("RelaxedBernoulli", {"temperature": 0.7, "probs": [0.3, 0.6]}),
    Case("RelaxedOneHotCategorical", {"temperature": 0.7, "probs": _ROWS}),
    Case(
        "StudentT",
        {"df": [1.5, 3.0], **_PAIR},
        lambda df, loc, scale: _stats().t(df, loc, scale),
    ),
    Case(
        "Uniform",
        {"low": [0.0, 1.0], "high": [1.0, 3.0]},
        lambda low, high: _stats().uniform(low, high - low),
    ),
    Case(
        "VonMises",
        {"loc": [0.0, 1.0], "concentration": [1.0, 5.0]},
        lambda loc, concentration: _stats().vonmises(concentration, loc),
    ),
    Case(
        "Weibull",
        {"scale": [1.0, 2.0], "concentration": [0.7, 3.0]},
        lambda scale, concentration: _stats().weibull_min(concentration, scale=scale),
    ),
    Case("Wishart", {"df": [3.0, 4.0], "covariance_matrix": _COVARIANCE}),
    Case("Wishart", {"df": [3.0, 4.0], "scale_tril": [[2.0, 0.0], [0.5, 1.0]]}),
]


def _exp(x: Any) -> Any:
    import numpy as np

    return np.exp(x)
