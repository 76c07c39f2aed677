"""Least squares by each driver, with SciPy's LAPACK and without it. The oracle is NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad

DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def normal(*shape: int) -> Any:
    return plugrad.from_numpy(np.random.default_rng(0).normal(size=shape))


@pytest.fixture(params=["LAPACK", "by parts"], autouse=True)
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    lapack = pytest.importorskip("plugrad_cpu.kernels.lapack")
    if request.param == "LAPACK":
        pytest.importorskip("scipy")
    else:
        monkeypatch.setattr(lapack, "_module", lambda name: None)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("sizes", [(6, 3), (3, 6), (70, 50), (50, 70)])
@pytest.mark.parametrize("dtype", [plugrad.float64, plugrad.complex128])
def test_drivers_find_numpys_solution(driver: str, sizes: tuple[int, int], dtype: Any) -> None:
    matrices = normal(2, *sizes).to(dtype)
    if dtype.is_complex:
        matrices = matrices + 1j * normal(3, *sizes)[1:]
    right = normal(2, sizes[0], 2).to(dtype)
    found = plugrad.linalg.lstsq(matrices, right, driver=driver)
    for number in range(2):
        solution, residuals, rank, values = np.linalg.lstsq(
            matrices[number].numpy(), right[number].numpy(), rcond=None
        )
        np.testing.assert_allclose(found.solution[number].numpy(), solution, rtol=1e-9)
        if driver != "gelsy" and residuals.size:
            np.testing.assert_allclose(found.residuals[number].numpy(), residuals, rtol=1e-9)
        if driver != "gels":
            assert found.rank[number] == rank
        if driver in ("gelsd", "gelss"):
            np.testing.assert_allclose(found.singular_values[number].numpy(), values, rtol=1e-9)


def test_the_rank_counts_what_exceeds_rcond() -> None:
    diagonal = plugrad.tensor([1.0, 1e-2, 1e-9], dtype=plugrad.float64).diag()
    right = plugrad.ones(3, 1, dtype=plugrad.float64)
    for driver in DRIVERS[1:]:
        found = plugrad.linalg.lstsq(diagonal, right, rcond=1e-3, driver=driver)
        assert found.rank == 2
        np.testing.assert_allclose(found.solution.flatten().numpy(), [1, 100, 0], atol=1e-9)


@pytest.mark.parametrize("least", [1e-3, 1e-14, 0.0])
@pytest.mark.parametrize("turned", [False, True])
def test_the_rank_of_a_large_matrix(least: float, turned: bool) -> None:
    left, right = plugrad.linalg.qr(normal(80, 60)).Q, plugrad.linalg.qr(normal(60, 60)).Q
    values = plugrad.ones(60, dtype=plugrad.float64)
    values[-3:] = least
    matrix = (left * values) @ right
    matrix = matrix.mT if turned else matrix
    side = normal(matrix.shape[0], 2)
    found = plugrad.linalg.lstsq(matrix, side)
    expected = np.linalg.lstsq(matrix.numpy(), side.numpy(), rcond=80 * 2.0**-52)
    assert found.rank == expected[2] == (60 if least > 1e-10 else 57)
    np.testing.assert_allclose(found.solution.numpy(), expected[0], rtol=1e-8, atol=1e-8)


def test_gels_finds_the_dependent_matrix_of_a_batch_however_columns_are_scaled() -> None:
    scaled = plugrad.tensor([[1.0, 0.0], [1.0, 1e-20], [1.0, 2e-20]], dtype=plugrad.float64)
    dependent = plugrad.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]], dtype=plugrad.float64)
    right = plugrad.tensor([[1.0], [3.0], [5.0]], dtype=plugrad.float64)
    found = plugrad.linalg.lstsq(scaled, right, driver="gels").solution
    np.testing.assert_allclose(found.flatten().numpy(), [1, 2e20])
    message = r"\(Batch element 1\): .* does not have full rank \(error code: 2\)"
    with pytest.raises(plugrad.linalg.LinAlgError, match=message):
        plugrad.linalg.lstsq(
            plugrad.stack([scaled, dependent]), plugrad.stack([right, right]), driver="gels"
        )
    nothing = plugrad.linalg.lstsq(plugrad.zeros_like(scaled), right, driver="gels")
    assert (nothing.solution.tolist(), nothing.residuals.tolist()) == ([[0], [0]], [0])


def test_matrices_that_share_right_sides_have_one_rank_each() -> None:
    found = plugrad.linalg.lstsq(normal(1, 4, 2), normal(3, 4, 2), driver="gelsd")
    assert [tuple(item.shape) for item in found] == [(3, 2, 2), (3, 2), (1,), (1, 2)]


def test_nothing_to_solve() -> None:
    for rows, columns in ((0, 3), (3, 0), (0, 0)):
        found = plugrad.linalg.lstsq(plugrad.zeros(2, rows, columns), normal(2, rows, 2).float())
        assert found.solution.tolist() == plugrad.zeros(2, columns, 2).tolist()
        assert found.rank.tolist() == [0, 0]


def test_singular_values_have_no_derivative_and_residuals_have_one() -> None:
    a, b = normal(4, 2).requires_grad_(), normal(4, 1).requires_grad_()
    found = plugrad.linalg.lstsq(a, b, driver="gelsd")
    assert found.solution.grad_fn.name() == "LinalgLstsqBackward0"
    assert [item.requires_grad for item in found] == [True, True, False, False]

    def residuals(a: Any, b: Any) -> Any:
        return plugrad.linalg.lstsq(a, b, driver="gelsd").residuals

    assert plugrad.testing.gradcheck(residuals, (a, b), check_forward_ad=True)
    assert plugrad.testing.gradgradcheck(residuals, (a, b))
