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


@pytest.mark.parametrize("device", ["cpu", "jax"])
def test_matrices_that_are_no_numbers(device: str) -> None:
    """LAPACK need not come to an end, or say a sign, where an element is infinite or nan."""
    values = [[float("-inf"), 1.0, -0.5], [0.5, -2.0, 1.0], [1.0, 0.25, 4.0]]
    a = plugrad.tensor(values).to(device)
    for function in (plugrad.linalg.svdvals, plugrad.linalg.svd):
        with pytest.raises(plugrad.linalg.LinAlgError, match="contained non-finite values"):
            function(a)
    values[0][0] = float("nan")
    assert plugrad.linalg.slogdet(plugrad.tensor(values).to(device)).sign.item() == 0
