"""Densities, probabilities and moments beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad import distributions
from tests.distributions.table import CASES, Case

pytest.importorskip("scipy")


@pytest.mark.parametrize("case", [case for case in CASES if case.scipy], ids=str)
def test_values(case: Case) -> None:
    ours, _ = case.make(plugrad, distributions)
    assert case.scipy is not None
    theirs = case.scipy(**{name: np.asarray(value) for name, value in case.parameters.items()})
    plugrad.manual_seed(0)
    value = ours.sample((5,))
    at = value.numpy()
    log_density = getattr(theirs, "logpdf" if hasattr(theirs.dist, "pdf") else "logpmf")
    close(ours.log_prob(value), log_density(at), 1e-6)
    if case.name != "VonMises":  # mean and variance are circular
        close(ours.mean, theirs.mean())
        if "Cauchy" not in case.name:  # nan for SciPy, inf for PyTorch
            close(ours.variance, theirs.var())
    for name, expected in (("entropy", theirs.entropy), ("cdf", lambda: theirs.cdf(at))):
        arguments = () if name == "entropy" else (value,)
        try:
            found = getattr(ours, name)(*arguments)
        except NotImplementedError:
            continue
        close(found, expected(), 1e-6)
    try:
        quantiles = ours.icdf(plugrad.full(ours.batch_shape, 0.3, dtype=plugrad.float64))
    except NotImplementedError:
        return
    close(quantiles, theirs.ppf(0.3), 1e-6)


def close(found: Any, expected: Any, limit: float = 1e-9) -> None:
    np.testing.assert_allclose(found.numpy(), expected, rtol=limit, atol=limit)


@pytest.mark.parametrize("case", [c for c in CASES if c.scipy], ids=str)
def test_samples_are_distributed_so(case: Case) -> None:
    from scipy import stats

    ours, _ = case.make(plugrad, distributions)
    assert case.scipy is not None
    theirs = case.scipy(**{name: np.asarray(value) for name, value in case.parameters.items()})
    plugrad.manual_seed(1)
    drawn = ours.sample((2000,)).numpy()
    if hasattr(theirs.dist, "pmf"):
        # Of a discrete distribution, what is uniform is a random place in the step of the cdf.
        place = np.random.default_rng(1).random(drawn.shape)
        below = theirs.cdf(drawn - 1) + place * theirs.pmf(drawn)
    else:
        below = theirs.cdf(drawn) % 1.0  # angles go round
    for column in below.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-4
