"""Hashes, static indices, segments, padding by elements and sequence layers: the shared suite."""

from __future__ import annotations

import plugrad
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestElements(OpSuite):
    cases = family_cases("elements")


def test_the_bits_of_two_equal_numbers_cancel_out() -> None:
    x = plugrad.tensor([1.5, -2.0, 1.5])
    assert plugrad.hash_tensor(x).item() == 0xC000000000000000  # those of -2.0


def test_empty_permuted_has_the_steps_of_its_physical_layout() -> None:
    x = plugrad.empty_permuted((2, 3, 4), (2, 0, 1), dtype=plugrad.int32)
    assert x.shape == (2, 3, 4)
    assert x.stride() == (3, 1, 6)
    assert x.dtype is plugrad.int32


def test_nonzero_static_under_vmap() -> None:
    x = plugrad.tensor([[0, 5, 6], [7, 0, 0]])
    found = plugrad.vmap(lambda row: plugrad.nonzero_static(row, size=2))(x)
    assert found.tolist() == [[[1], [2]], [[0], [-1]]]
