"""Linear systems, inverses, determinants and norms of matrices."""

from __future__ import annotations

import numpy as np
import pytest

import plugrad
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestLinearSystems(OpSuite):
    cases = family_cases("linear_systems")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_determinants_of_large_matrices(dtype: str) -> None:
    """The oracle is NumPy, in double precision."""
    generator = np.random.default_rng(0)
    numbers = generator.standard_normal((2, 60, 60)).astype(dtype) / 4
    if dtype == "complex128":
        numbers = numbers * np.exp(1j * generator.random(60))
    numbers[1, :, 3] = numbers[1, :, 4] = 0
    wide = numbers.astype(np.result_type(numbers, np.float64))
    a = plugrad.tensor(numbers)
    sign, size = plugrad.linalg.slogdet(a)
    tolerance = 1e-3 if dtype == "float32" else 1e-9
    for found, expected in zip(
        (plugrad.linalg.det(a), sign, size),
        (np.linalg.det(wide), *np.linalg.slogdet(wide)),
        strict=True,
    ):
        np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance)
        assert found.dtype is (a.dtype.to_real() if found is size else a.dtype)
