"""Factorizations in NumPy, which backends without kernels use. Oracle: what the factors multiply
to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.ops.on_demand.factorizations import cholesky, ldl, lu, triangular

# More than one block.
N = 70


def random(*shape: int, is_complex: bool = False) -> Any:
    rng = np.random.default_rng(sum(shape))
    values = rng.normal(size=shape)
    return values + 1j * rng.normal(size=shape) if is_complex else values


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("shape", [(N, N), (N, 40), (40, N), (2, 3, 3)])
def test_lu(shape: tuple[int, ...], is_complex: bool) -> None:
    A = random(*shape, is_complex=is_complex)
    LU, pivots, info = lu.lu_factor(A)
    m, k = shape[-2], min(shape[-2:])
    L = np.tril(LU[..., :k], -1) + np.eye(m, k)
    rows = lu.permutation(pivots, m)
    np.testing.assert_allclose(
        L @ np.triu(LU[..., :k, :]), np.take_along_axis(A, rows[..., None], -2)
    )
    assert abs(L).max() <= np.sqrt(2) + 1e-9
    assert not info.any()


def test_lu_counts_the_first_zero_pivot() -> None:
    A = np.stack([np.ones((2, 2)), np.eye(2), np.zeros((2, 2))])
    assert lu.lu_factor(A)[2].tolist() == [2, 0, 1]


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("upper", [False, True])
def test_triangular_systems(upper: bool, left: bool, unit: bool) -> None:
    A = random(2, N, N) / N + np.eye(N)
    B = random(N, N)
    X = triangular.solve_triangular(A, B, upper, left, unit)
    T = np.triu(A, 1) if upper else np.tril(A, -1)
    T = T + (np.eye(N) if unit else A * np.eye(N))
    np.testing.assert_allclose(T @ X if left else X @ T, np.stack([B, B]), atol=1e-9)


def test_a_zero_on_the_diagonal_gives_inf() -> None:
    found = triangular.solve_triangular(np.zeros((1, 1)), np.ones((1, 1)), False)
    assert np.isposinf(found).all()


def test_cholesky_says_how_far_it_came() -> None:
    A = random(4, 4) @ random(4, 4).T + 4 * np.eye(4)
    broken = A.copy()
    broken[2, 2] = -5
    L, info = cholesky.cholesky(np.stack([A, broken]))
    np.testing.assert_allclose(L[0] @ L[0].T, A)
    np.testing.assert_allclose(L[1][:2, :2] @ L[1][:2, :2].T, A[:2, :2])
    assert info.tolist() == [0, 3]


@pytest.mark.parametrize("n", [1, 2, 3, 6])
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("zero_diagonal", [False, True])
def test_ldl(n: int, hermitian: bool, is_complex: bool, zero_diagonal: bool) -> None:
    if n == 1 and zero_diagonal:
        return
    A = random(2, n, n, is_complex=is_complex)
    A = A + (np.conj(np.swapaxes(A, -1, -2)) if hermitian else np.swapaxes(A, -1, -2))
    if zero_diagonal:  # blocks of 2 by 2
        A = A * (1 - np.eye(n))
    LD, pivots, info = ldl.ldl_factor(A, hermitian)
    B = random(n, 2, is_complex=is_complex)
    X = ldl.ldl_solve(LD, pivots, B, hermitian)
    np.testing.assert_allclose(A @ X, np.stack([B, B]), atol=1e-9)
    assert (pivots < 0).any() or not zero_diagonal
    assert not info.any()


def test_the_cpu_needs_no_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it kernels decline, and these run."""
    lapack = pytest.importorskip("plugrad_cpu.kernels.lapack")
    monkeypatch.setattr(lapack, "_module", lambda name: None)
    a = plugrad.from_numpy(random(3, 3) + 3 * np.eye(3))
    identity = plugrad.eye(3, dtype=plugrad.float64)
    LU, pivots = plugrad.linalg.lu_factor(a)
    for adjoint in (False, True):
        matrix = a.mT if adjoint else a
        inverse = plugrad.linalg.lu_solve(LU, pivots, identity, adjoint=adjoint)
        assert plugrad.allclose(matrix @ inverse, identity)
        from_right = plugrad.linalg.lu_solve(LU, pivots, identity, left=False, adjoint=adjoint)
        assert plugrad.allclose(from_right @ matrix, identity)
    upper = plugrad.linalg.solve_triangular(a, identity, upper=True)
    assert plugrad.allclose(a.triu() @ upper, identity)
    factors = plugrad.linalg.ldl_factor(a + a.mT)
    assert plugrad.allclose((a + a.mT) @ plugrad.linalg.ldl_solve(*factors, identity), identity)
