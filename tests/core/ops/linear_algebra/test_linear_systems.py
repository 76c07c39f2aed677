"""Linear systems, inverses, determinants and norms of matrices."""

from __future__ import annotations

import numpy as np
import pytest

import plugrad
from plugrad.ops.on_demand.composite.lu import slogdet_on_host
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite, needs_torch, torch


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


@needs_torch
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("size", [3, 60])
def test_the_sign_of_a_determinant_that_is_no_number(size: int, dtype: str) -> None:
    """PyTorch's: 0 of real numbers, nan of complex ones; the kernels and the decomposition."""
    numbers = np.random.default_rng(0).standard_normal((2, size, size)).astype(dtype)
    numbers[0, 1, 1] = np.nan
    a = plugrad.tensor(numbers)
    expected = torch.linalg.slogdet(torch.from_numpy(numbers)).sign.numpy()
    for found in (plugrad.linalg.slogdet(a), slogdet_on_host(a)):
        np.testing.assert_allclose(found.sign.numpy(), expected, rtol=1e-4)
