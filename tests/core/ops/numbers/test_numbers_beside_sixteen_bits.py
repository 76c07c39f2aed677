"""Numbers beside 16-bit floats: which are rounded to 16 bits first (oracle: float64)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad

X = [0.3, 1.7, 2.9, 5.1, 7.3, 9.7]
# Neither has 16 bits.
NUMBER = 0.3337
FACTOR = 0.777


@pytest.fixture(params=["float16", "bfloat16"])
def dtype(request: pytest.FixtureRequest) -> Any:
    return getattr(plugrad, request.param)


def rounded(number: float, dtype: Any) -> float:
    return float(plugrad.tensor(number, dtype=dtype).item())


@pytest.mark.parametrize(
    "function",
    [
        lambda x, number: x * number,
        lambda x, number: number * x,
        lambda x, number: x / number,
        lambda x, number: x // number,
        lambda x, number: x.div(number, rounding_mode="floor"),
        lambda x, number: x.div(number, rounding_mode="trunc"),
        lambda x, number: x.clone().mul_(number),
        lambda x, number: x.clone().div_(number),
        lambda x, number: x * plugrad.tensor(number, dtype=plugrad.float64),
    ],
)
def test_factors_and_divisors_are_not_rounded(function: Callable[..., Any], dtype: Any) -> None:
    x = plugrad.tensor(X, dtype=dtype)
    assert plugrad.equal(function(x, NUMBER), function(x.double(), NUMBER).to(dtype))
    assert not plugrad.equal(x * NUMBER, (x.double() * rounded(NUMBER, dtype)).to(dtype))


@pytest.mark.parametrize("name", ["add", "sub", "add_", "sub_", "rsub"])
def test_alpha_is_rounded_and_the_sum_is_rounded_once(name: str, dtype: Any) -> None:
    x = plugrad.tensor(X, dtype=dtype)
    y = plugrad.tensor(X[::-1], dtype=dtype)
    call: Callable[..., Any] = getattr(plugrad, name, None) or getattr(plugrad.Tensor, name)
    found = call(x.clone(), y, alpha=FACTOR)
    expected = call(x.double(), y.double(), alpha=rounded(FACTOR, dtype)).to(dtype)
    assert plugrad.equal(found, expected)


def test_terms_are_rounded(dtype: Any) -> None:
    x = plugrad.tensor(X, dtype=dtype)
    number, factor = rounded(NUMBER, dtype), rounded(FACTOR, dtype)
    assert plugrad.equal(x + NUMBER, (x.double() + number).to(dtype))
    found = plugrad.add(x, NUMBER, alpha=FACTOR)
    assert plugrad.equal(found, (x.double() + number * factor).to(dtype))
    found = plugrad.rsub(x, NUMBER, alpha=FACTOR)
    assert plugrad.equal(found, (number - x.double() * factor).to(dtype))
