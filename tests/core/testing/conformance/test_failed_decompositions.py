"""The kit compares what says that a decomposition failed; what it left behind is undefined."""

from __future__ import annotations

import pytest

import plugrad
from plugrad.return_types import linalg_cholesky_ex
from plugrad.testing.conformance.kit.compare import assert_matches
from plugrad.testing.conformance.kit.subject import Subject

DEFINITE = plugrad.tensor([[4.0, 0.0], [0.0, 1.0]])
INDEFINITE = plugrad.tensor([[2.0, 1.0], [1.0, -1.0]])


def test_what_a_failed_decomposition_left_is_not_compared() -> None:
    expected = plugrad.linalg.cholesky_ex(INDEFINITE)
    actual = linalg_cholesky_ex((expected.L * float("nan"), expected.info))
    assert_matches(Subject("cpu"), actual, expected)


def test_that_it_failed_is_compared() -> None:
    expected = plugrad.linalg.cholesky_ex(INDEFINITE)
    actual = linalg_cholesky_ex((expected.L, expected.info * 0))
    with pytest.raises(AssertionError):
        assert_matches(Subject("cpu"), actual, expected)


def test_a_factor_that_is_there_is_compared() -> None:
    expected = plugrad.linalg.cholesky_ex(DEFINITE)
    actual = linalg_cholesky_ex((expected.L * 2, expected.info))
    with pytest.raises(AssertionError):
        assert_matches(Subject("cpu"), actual, expected)
