"""Every sample of every operator on plugrad-cuda's kernels, with NumPy as their namespace."""

from __future__ import annotations

import pytest

from plugrad.testing.cases import OpCase
from tests.core.backends.against_cpu import CASES, check_case


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_results_and_gradients_are_the_cpus(case: OpCase, dtype: str, kernels_device: str) -> None:
    if dtype == "float64" or dtype in case.dtypes:
        check_case(case, dtype, kernels_device)
