"""The kit compares what says that a decomposition failed; what it left behind is undefined."""

from __future__ import annotations

import pytest

import plugrad
from plugrad.return_types import linalg_cholesky_ex
from plugrad.testing.cases import OpCase
from plugrad.testing.conformance.kit.compare import assert_matches
from plugrad.testing.conformance.kit.subject import Subject

CASE = OpCase("linalg.cholesky_ex", [], undefined_where_failed=True)
# The first has no factor, the second has.
MATRICES = plugrad.tensor([[[2.0, 1.0], [1.0, -1.0]], [[4.0, 0.0], [0.0, 1.0]]])
EXPECTED = plugrad.linalg.cholesky_ex(MATRICES)


def result(factor: plugrad.Tensor, info: plugrad.Tensor) -> linalg_cholesky_ex:
    return linalg_cholesky_ex((factor, info))


def with_first(value: float) -> plugrad.Tensor:
    return plugrad.stack([plugrad.full((2, 2), value), EXPECTED.L[1]])


def test_what_a_failed_decomposition_left_is_not_compared() -> None:
    actual = result(with_first(float("nan")), EXPECTED.info)
    assert_matches(Subject("cpu"), actual, EXPECTED, CASE)
    with pytest.raises(AssertionError):
        assert_matches(Subject("cpu"), actual, EXPECTED)


@pytest.mark.parametrize(
    "actual",
    [
        result(EXPECTED.L, EXPECTED.info * 0),
        result(EXPECTED.L * 2, EXPECTED.info),
        result(EXPECTED.L[:, :1], EXPECTED.info),
        result(EXPECTED.L.double(), EXPECTED.info),
    ],
    ids=["info", "the factor that is there", "shape", "dtype"],
)
def test_all_else_is_compared(actual: linalg_cholesky_ex) -> None:
    with pytest.raises(AssertionError):
        assert_matches(Subject("cpu"), actual, EXPECTED, CASE)
