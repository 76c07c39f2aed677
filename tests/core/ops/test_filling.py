"""Tensors that are filled or padded, and those on the memory of others."""

from __future__ import annotations

import pytest

import plugrad
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestFilling(OpSuite):
    cases = family_cases("filling")


def test_a_tensor_shares_the_memory_of_its_buffer() -> None:
    memory = bytearray([1, 0, 2, 0, 3, 0])
    x = plugrad.frombuffer(memory, dtype=plugrad.int16, count=2, offset=2)
    assert x.tolist() == [2, 3]
    x[0] = 7
    assert memory[2] == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, "must not be 0"),
        ({"offset": 5}, "no greater than buffer length"),
        ({"count": 3}, "requested buffer length"),
        ({"offset": 1}, "must be a multiple of element size"),
    ],
)
def test_a_buffer_that_is_too_short_is_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plugrad.frombuffer(bytearray(4), dtype=plugrad.int16, **options)


def test_dim_order_follows_the_strides() -> None:
    x = plugrad.zeros(2, 3)
    assert x.dim_order() == (0, 1)
    assert x.t().dim_order() == (1, 0)
    pictures = plugrad.zeros(2, 3, 4, 5).to(memory_format=plugrad.channels_last)
    assert pictures.dim_order() == (0, 2, 3, 1)
    with pytest.raises(RuntimeError, match="unique dim order"):
        plugrad.zeros(1, 2).dim_order(ambiguity_check=True)


def test_is_set_to_compares_memory_and_geometry() -> None:
    x = plugrad.zeros(2, 3)
    assert x.is_set_to(x.detach())
    assert not x.is_set_to(x.view(6))
    assert not x.is_set_to(x.clone())


def test_low_rank_decompositions_give_back_a_matrix_of_low_rank() -> None:
    plugrad.manual_seed(0)
    a = plugrad.randn(5, 2, dtype=plugrad.float64) @ plugrad.randn(2, 4, dtype=plugrad.float64)
    for matrix in (a, a.mT):
        U, S, V = plugrad.svd_lowrank(matrix, q=3)
        plugrad.testing.assert_close(U @ plugrad.diag(S) @ V.mH, matrix)
        centered = matrix - matrix.mean(0)
        U, S, V = plugrad.pca_lowrank(matrix, q=3)
        plugrad.testing.assert_close(U @ plugrad.diag(S) @ V.mH, centered)
