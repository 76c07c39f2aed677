"""Counts of intervals by the kernel of the CPU. Oracle: PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad_cpu.kernels import sorting


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 2, 40, 1000])
def test_counts_are_those_of_pytorch(
    dtype: str, count: int, monkeypatch: pytest.MonkeyPatch, torch_oracle: Any
) -> None:
    monkeypatch.setattr(sorting, "_BLOCK", 300)
    array = np.random.default_rng(0).standard_normal((2, count, 1)).astype(dtype)
    given, oracle = plugrad.from_numpy(array), torch_oracle.from_numpy(array)
    for x, y in [(given, oracle), (given.transpose(0, 1), oracle.transpose(0, 1))]:
        for options in ((), (7,), (10, -1, 1), (3, 0.1, 0.3), (4, -9, 9), (5, 6, 7), (1, -1, -1)):
            found, expected = plugrad.histc(x, *options), torch_oracle.histc(y, *options)
            assert str(found.dtype) == f"plugrad.{dtype}"
            np.testing.assert_array_equal(found.numpy(), expected.numpy())


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_in_no_interval(strange: float, torch_oracle: Any) -> None:
    array = np.array([0.5, strange, 1.5, strange, 3.0])
    found = plugrad.histc(plugrad.from_numpy(array), 4, 0, 2)
    expected = torch_oracle.histc(torch_oracle.from_numpy(array), 4, 0, 2)
    assert found.tolist() == expected.tolist() == [0, 1, 0, 1]
    with pytest.raises(RuntimeError, match="is not finite"):
        plugrad.histc(plugrad.from_numpy(array), 4)


def test_equal_elements_are_in_the_middle_and_the_last_end_counts() -> None:
    assert plugrad.histc(plugrad.full((3,), 2.0), 4).tolist() == [0, 0, 3, 0]
    assert plugrad.histc(plugrad.tensor([0.0, 1.0, 2.0]), 2).tolist() == [1, 2]


def test_what_cannot_be_counted_is_refused() -> None:
    x = plugrad.tensor([0.0, 1.0])
    with pytest.raises(RuntimeError, match="max must be larger than min"):
        plugrad.histc(x, 4, 2, 1)
    with pytest.raises(RuntimeError):
        plugrad.histc(x, 0)
    assert plugrad.histc(plugrad.zeros(0), 3).tolist() == [0, 0, 0]
