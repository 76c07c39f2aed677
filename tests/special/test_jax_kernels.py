"""Kernels on JAX arrays give what SciPy gives, in the same dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad_special.cases import Row
from plugrad_special.kernels.cpu import KERNELS
from tests.special.inputs import arguments, rows

jax = pytest.importorskip("jax", reason="jax is not installed")
table = pytest.importorskip("plugrad_special.kernels.jax")


def has_kernel(row: Row) -> bool:
    return f"special::{row.name}" in table.KERNELS


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("row", rows(has_kernel))
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_values(row: Row, dtype: str) -> None:
    given = [v.detach().numpy() if isinstance(v, plugrad.Tensor) else v for v in arguments(row)]
    given = [v.astype(dtype) if isinstance(v, np.ndarray) else v for v in given]
    expected = KERNELS[f"special::{row.name}"](*given)
    with jax.enable_x64(True):
        arrays = [jax.numpy.asarray(v) if isinstance(v, np.ndarray) else v for v in given]
        found = table.KERNELS[f"special::{row.name}"](*arrays)
    tolerance = {"float64": 1e-9, "float32": 1e-3, "float16": 2e-2}[dtype]
    for its, our in zip(as_list(found), as_list(expected), strict=True):
        assert np.asarray(its).dtype == our.dtype
        np.testing.assert_allclose(np.asarray(its), our, rtol=tolerance, atol=tolerance)


def test_jax_has_the_functions_of_the_table() -> None:
    names = {*table.SAME_NAME, *table.COMPLEX, "cbrt"}
    assert set(table.KERNELS) == {f"special::{name}" for name in names}
    assert set(table.KERNELS) <= set(KERNELS)


def test_complex_numbers_are_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match='"ndtri" not implemented for \'ComplexFl'):
        table.KERNELS["special::ndtri"](jax.numpy.ones(2, "complex64"))
