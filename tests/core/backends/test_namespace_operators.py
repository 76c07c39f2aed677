"""Every sample of every operator on backends from namespaces: results and gradients of the CPU.

What such a backend cannot do is passed over here; `test_namespace_backend.py` says what that is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from plugrad.plugins import Backend
from plugrad.testing.cases import OpCase
from tests.core.backends.against_cpu import CASES, check_case
from tests.core.backends.conftest import activated
from tests.core.backends.strict_flags import strict

# Older versions of the standard and its optional parts are tested with one dtype.
VERSIONS = [
    *(("newest", dtype) for dtype in ("float64", "int64", "bool", "complex64")),
    *(("2023.12", "float64"), ("the least", "float64"), ("the least", "complex64")),
]


@pytest.fixture(scope="module")
def strict_device(request: pytest.FixtureRequest) -> Iterator[str]:
    with (
        strict(request.param) as xp,
        activated(Backend.from_array_namespace(xp, "strict")) as name,
    ):
        yield name


@pytest.fixture(scope="module")
def numpy_device() -> Iterator[str]:
    with activated(Backend.from_array_namespace(np, "np")) as name:
        yield name


# The scope puts the tests in order, so that each backend is made once.
@pytest.mark.parametrize(
    ("strict_device", "dtype"), VERSIONS, indirect=["strict_device"], scope="module"
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_array_api_strict(case: OpCase, dtype: str, strict_device: str) -> None:
    if dtype == "float64" or dtype in case.dtypes:
        check_case(case, dtype, strict_device)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_numpy_as_a_namespace(case: OpCase, dtype: str, numpy_device: str) -> None:
    if dtype in case.dtypes:
        check_case(case, dtype, numpy_device)
