"""Solving by the factors of LU, in one program: the system itself is the oracle."""

from __future__ import annotations

import pytest

import plugrad


# From the right means by the adjoint, and the other way round.
@pytest.mark.parametrize(("left", "adjoint"), [(True, False), (False, False), (False, True)])
def test_factors_of_batches_solve_systems(left: bool, adjoint: bool) -> None:
    plugrad.manual_seed(0)
    a = plugrad.randn(2, 1, 4, 4, dtype=plugrad.complex64).to("jax")
    b = plugrad.randn(3, *((4, 2) if left else (2, 4)), dtype=plugrad.complex64).to("jax")
    x = plugrad.linalg.lu_solve(*plugrad.linalg.lu_factor(a), b, left=left, adjoint=adjoint)
    matrix = a.mH if adjoint else a
    product = matrix @ x if left else x @ matrix
    plugrad.testing.assert_close(product, b.expand(product.shape), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("device", ["cpu", "jax"])
def test_info_says_which_matrices_have_no_cholesky_factor(device: str) -> None:
    values = [[[2.0, 1.0], [1.0, -1.0]], [[4.0, 0.0], [0.0, 1.0]]]
    for dtype in (plugrad.float32, plugrad.complex64):
        factor, info = plugrad.linalg.cholesky_ex(plugrad.tensor(values, dtype=dtype).to(device))
        assert info.tolist() == [2, 0]
        assert factor[1].tolist() == [[2, 0], [0, 1]]
