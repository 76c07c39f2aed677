"""Reductions and scans: the shared suite, and what happens at corners."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestReductions(OpSuite):
    cases = family_cases("reductions")


def gradient(function: Any, values: Any) -> list[float]:
    x = plugrad.tensor(values, dtype=plugrad.float64, requires_grad=True)
    function(x).sum().backward()
    found: list[float] = x.grad.tolist()
    return found


# The expected values are PyTorch 2.13's.
@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        (lambda x: x.max(), [1.0, 1.0, 0.0], [0.5, 0.5, 0.0]),
        (lambda x: x.min(), [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]),
        (lambda x: x.max(0)[0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0]),
        (lambda x: x.amax(0), [1.0, 1.0, 0.0], [0.5, 0.5, 0.0]),
        (lambda x: x.median(), [1.0, 1.0, 0.0, 1.0], [1 / 3, 1 / 3, 0.0, 1 / 3]),
        (lambda x: x.max(), [math.nan, 1.0], [1.0, 0.0]),
        (lambda x: x.norm(), [0.0, 0.0], [0.0, 0.0]),
        (lambda x: x.norm(1), [0.0, 1.0], [0.0, 1.0]),
        (lambda x: x.norm(0.5), [0.0, 1.0], [0.0, 1.0]),
        (lambda x: x.norm(1.5), [0.0, 0.0], [0.0, 0.0]),
        (lambda x: x.norm(3), [0.0, 0.0], [0.0, 0.0]),
        (lambda x: x.norm(math.inf), [1.0, -1.0, 0.0], [0.5, -0.5, 0.0]),
        (lambda x: x.norm(-math.inf), [1.0, -1.0, 2.0], [0.5, -0.5, 0.0]),
        (lambda x: x.std(), [1.0, 1.0], [0.0, 0.0]),
        (lambda x: x.var(), [1.0], [math.nan]),
        (lambda x: x.std(), [1.0], [math.nan]),
        (lambda x: x.prod(), [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
        (lambda x: x.prod(0), [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]),
        (lambda x: x.cumprod(0), [2.0, 0.0, 3.0, 0.0], [1.0, 8.0, 0.0, 0.0]),
        (lambda x: x.nansum(), [math.nan, 1.0], [0.0, 1.0]),
        (lambda x: x.logsumexp(0), [-math.inf, 1.0], [0.0, 1.0]),
    ],
)
def test_gradient_at_corner(function: Any, values: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(gradient(function, values), expected)


def test_sum_of_integers_is_int64() -> None:
    for dtype in (plugrad.uint8, plugrad.int32, plugrad.bool):
        assert plugrad.ones(3, dtype=dtype).sum().dtype is plugrad.int64


def test_sum_of_half_accumulates_in_float32() -> None:
    x = plugrad.ones(4096, 2, dtype=plugrad.float16)
    assert x.sum(0).tolist() == [4096.0, 4096.0]


def test_any_and_all_keep_uint8() -> None:
    x = plugrad.tensor([0, 3], dtype=plugrad.uint8)
    assert x.any().dtype is plugrad.uint8
    assert x.all().item() == 0


def test_nan_is_the_largest_and_the_smallest() -> None:
    x = plugrad.tensor([1.0, math.nan, 3.0])
    assert x.argmax().item() == x.argmin().item() == 1
    assert math.isnan(x.max().item())
    assert math.isnan(x.amin().item())


def test_max_along_dim_names_its_results() -> None:
    result = plugrad.tensor([[1.0, 3.0], [5.0, 2.0]]).max(1)
    assert result.values.tolist() == [3.0, 5.0]
    assert result.indices.tolist() == [1, 0]


def test_no_numpy_warning_leaks(recwarn: pytest.WarningsRecorder) -> None:
    empty = plugrad.zeros(0)
    empty.mean()
    empty.var()
    plugrad.tensor([1.0]).std()
    plugrad.full((2,), 1e38).sum()
    plugrad.tensor([-math.inf, math.inf]).sum()
    assert not recwarn.list


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((70001,), (0,)),
        ((3, 70001), (1,)),
        ((2200, 37), (1,)),
        ((23, 3000), (0, 1)),
        ((70, 1009), (1,)),
        ((70, 1009), (0,)),
    ],
)
def test_sums_of_large_arrays(dtype: str, shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    """The oracle is NumPy, in double precision: the CPU cuts such lines into parts."""
    numbers = np.random.default_rng(0).random(shape).astype(dtype)
    x = plugrad.tensor(numbers)
    expected = numbers.sum(dims, np.float64)
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    found = x.sum(dims)
    assert found.dtype is x.dtype
    np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance)
    np.testing.assert_allclose(
        x.mean(dims, keepdim=True).squeeze(dims).numpy(),
        expected * (expected.size / x.numel()),
        rtol=tolerance,
    )
