"""Every sample of every operator on plugrad-cuda's kernels, with NumPy as their namespace."""

from __future__ import annotations

import pytest

from plugrad.testing.cases import OpCase
from tests.core.backends.against_cpu import CASES, check_case

DTYPES = ("float64", "float32", "int64", "uint8", "bool", "complex64")
ROWS = [
    pytest.param(case, dtype, id=f"{case.op}-{dtype}")
    for case in CASES
    for dtype in DTYPES
    if dtype == "float64" or dtype in case.dtypes
]


@pytest.mark.parametrize(("case", "dtype"), ROWS)
def test_results_and_gradients_are_the_cpus(case: OpCase, dtype: str, kernels_device: str) -> None:
    check_case(case, dtype, kernels_device)
