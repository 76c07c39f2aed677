"""Decompositions of matrices, and what is solved by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.ops.on_demand.composite.decompositions import cholesky_on_host, svd_on_host
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite, needs_torch, torch


class TestMatrixDecompositions(OpSuite):
    cases = family_cases("decompositions")


@needs_torch
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("n", [2, 40])
def test_a_matrix_with_nan_has_no_cholesky_factor(n: int, upper: bool, dtype: str) -> None:
    """The kernel and the decomposition say which minor it is; PyTorch is the oracle."""
    generator = np.random.default_rng(0)
    a = generator.standard_normal((4, n, n))
    a = (a @ a.swapaxes(-1, -2) + n * np.eye(n)).astype(dtype)
    a[1, 0, 0] = a[2, n - 1, n - 1] = a[3, 0, 1] = a[3, 1, 0] = np.nan
    expected = torch.linalg.cholesky_ex(torch.from_numpy(a), upper=upper).info.tolist()
    assert expected == [0, 1, n, 2]
    given = plugrad.tensor(a)
    assert plugrad.linalg.cholesky_ex(given, upper=upper).info.tolist() == expected
    assert cholesky_on_host(given, upper)[1].tolist() == expected
    with pytest.raises(plugrad.linalg.LinAlgError, match="of order 2 is not positive-definite"):
        plugrad.linalg.cholesky(given[3], upper=upper)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("n", [3, 40])
def test_singular_values_of_what_is_not_finite_are_refused(n: int, number: float) -> None:
    """LAPACK need not come to an end where an element is infinite."""
    a = np.random.default_rng(0).standard_normal((2, n, n))
    a[1, 0, 0] = number
    given: Any = plugrad.tensor(a)
    calls: list[Callable[[], Any]] = [
        lambda: plugrad.linalg.svdvals(given),
        lambda: plugrad.linalg.svd(given),
        lambda: plugrad.linalg.pinv(given),
        lambda: svd_on_host(given, True, False, None),
        lambda: svd_on_host(given, True, True, None),
    ]
    for call in calls:
        with pytest.raises(plugrad.linalg.LinAlgError, match=r"element 1\): .* non-finite values"):
            call()
