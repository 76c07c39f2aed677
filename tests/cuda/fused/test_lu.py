"""LU by a block for each matrix: LAPACK's factors, pivots and `info`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import lapack

from plugrad_cuda.fused import kernels, lu
from tests.cuda.emulation.build import compiler
from tests.cuda.emulation.runtime import Emulation, EmulationError

PREFIXES = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
# A batch in one block at a time, matrices wider and higher than a warp, nothing at all.
SHAPES = [(2, 3, 5, 5), (40, 3), (3, 70), (2, 66, 66), (2, 1, 1), (0, 3, 3), (2, 0, 3), (4, 2, 0)]


def random(shape: tuple[int, ...], dtype: str = "float64") -> Any:
    rng = np.random.default_rng(shape)
    values = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    return (values if dtype.startswith("c") else values.real).astype(dtype)


def check(run: Emulation, a: Any) -> Any:
    """Compares with LAPACK, matrix by matrix; returns `info`."""
    factors, pivots, info = kernels({}, run)["_linalg_lu_factor"](a, True)
    assert (factors.shape, factors.dtype) == (a.shape, a.dtype)
    assert (pivots.shape, pivots.dtype) == ((*a.shape[:-2], min(a.shape[-2:])), np.int32)
    assert (info.shape, info.dtype) == (a.shape[:-2], np.int32)
    getrf = getattr(lapack, PREFIXES[a.dtype.name] + "getrf")
    tolerance = 1e-12 if a.dtype.name in ("float64", "complex128") else 1e-4
    for place in np.ndindex(a.shape[:-2]) if a.size else ():
        wanted, exchanged, code = getrf(a[place])
        np.testing.assert_allclose(factors[place], wanted, rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(pivots[place], exchanged + 1)
        assert info[place] == code
    return info


@pytest.fixture(scope="module")
def one_block() -> Emulation:
    if compiler() is None:
        pytest.skip("there is no C++ compiler")
    return Emulation(most_blocks=1)


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(one_block: Emulation, shape: tuple[int, ...]) -> None:
    check(one_block, random(shape))


@pytest.mark.parametrize("dtype", PREFIXES)
def test_dtypes_and_strides(emulation: Emulation, dtype: str) -> None:
    check(emulation, random((3, 6, 5), dtype).swapaxes(-1, -2))


def test_the_first_zero_on_the_diagonal_is_told(emulation: Emulation) -> None:
    singular = np.ones((4, 4))
    singular[0, 0] = 2.0
    zeros = np.zeros((4, 4))
    assert check(emulation, np.stack([random((4, 4)), singular, zeros])).tolist() == [0, 3, 1]


@pytest.mark.parametrize("place", [(0, 0), (2, 0), (3, 3)])
def test_nan_is_no_pivot_but_for_the_diagonals_own(
    emulation: Emulation, place: tuple[int, int]
) -> None:
    from plugrad.ops.on_demand.factorizations.lu import lu_factor

    a = random((4, 4))
    a[place] = np.nan
    found = kernels({}, emulation)["_linalg_lu_factor"](a, True)
    for ours, theirs in zip(found, lu_factor(a), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_large_divisors_do_not_overflow(emulation: Emulation) -> None:
    a = np.array([[1e30 + 1e30j, 1], [1e30 - 1e30j, 2]], np.complex64)
    check(emulation, a)
    check(emulation, a * np.complex64(1e-60))


def test_without_pivoting(emulation: Emulation) -> None:
    a = random((3, 3))
    factors, pivots, info = kernels({}, emulation)["_linalg_lu_factor"](a, False)
    lower = np.tril(factors, -1) + np.eye(3)
    np.testing.assert_allclose(lower @ np.triu(factors), a, rtol=1e-10)
    assert (pivots.tolist(), info.tolist()) == ([1, 2, 3], 0)


def test_one_large_matrix_is_left_to_cusolver(emulation: Emulation) -> None:
    assert lu.lu_factor(emulation, np.ones((65, 65)), True) is NotImplemented
    assert lu.lu_factor(emulation, np.ones((3, 3), np.float16), True) is NotImplemented


def test_order_of_rows(one_block: Emulation) -> None:
    a = random((300, 4, 2))
    factors, pivots, _ = kernels({}, one_block)["_linalg_lu_factor"](a, True)
    order = lu.row_order(one_block, pivots, 4)
    lower = np.tril(factors, -1) + np.eye(4, 2)
    product = lower @ np.triu(factors[:, :2])
    np.testing.assert_allclose(product, np.take_along_axis(a, order[..., None], 1), atol=1e-12)


@pytest.mark.parametrize("pivot", [0, 4])
def test_a_pivot_that_is_no_row_ends_the_kernel(emulation: Emulation, pivot: int) -> None:
    with pytest.raises(EmulationError, match="trap"):
        lu.row_order(emulation, np.array([pivot], np.int32), 3)
