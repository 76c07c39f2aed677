"""Ends of ranges and exponents, dimensions that are none. Oracle: PyTorch 2.13's results."""

from __future__ import annotations

import math

import pytest

import plugrad

INF = math.inf


@pytest.mark.parametrize("device", ["cpu", "jax"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_uniform_numbers_stay_below_the_end(device: str, dtype: str) -> None:
    if device == "jax":
        pytest.importorskip("plugrad_jax")
    # In 16 bits, many of these would be rounded up to 3.
    drawn = plugrad.empty(100_000, dtype=getattr(plugrad, dtype), device=device).uniform_(2, 3)
    assert float(drawn.min().item()) >= 2
    assert float(drawn.max().item()) < 3
    assert plugrad.empty(2).uniform_(0.5, 0.5).tolist() == [0.5, 0.5]


def test_a_probability_beyond_1_is_refused() -> None:
    for p in (2.0, -1.0, math.nan):
        with pytest.raises(RuntimeError, match=r"expects p to be in \[0, 1\], but got p="):
            plugrad.bernoulli(plugrad.zeros(2), p)


@pytest.mark.parametrize("device", ["cpu", "jax"])
def test_any_and_all_over_no_dimension_ask_each_element(device: str) -> None:
    if device == "jax":
        pytest.importorskip("plugrad_jax")
    x = plugrad.tensor([[0.0, 1.0], [2.0, 0.0]], device=device)
    expected = [[False, True], [True, False]]
    for function in (plugrad.any, plugrad.all):
        assert function(x, ()).tolist() == expected
        assert function(x, [], keepdim=True).tolist() == expected
        assert function(x.to(plugrad.uint8), ()).dtype is plugrad.uint8
        for dim in (0, 1):
            mapped = plugrad.vmap(lambda row, ask=function: ask(row, ()), in_dims=dim, out_dims=dim)
            assert mapped(x).tolist() == expected
        of_numbers = plugrad.vmap(lambda number, ask=function: ask(number, ()))
        assert of_numbers(x[0]).tolist() == expected[0]


@pytest.mark.parametrize(
    ("x", "exponent", "expected"),
    [
        (1e-30, 200, 1.6069380493547143e30),
        (1.0, -149, 1.401298464324817e-45),
        (3.0, 127, INF),
        (INF, -2000, INF),
        (0.0, 2000, 0.0),
        (1.0, 0.5, math.sqrt(2)),
    ],
)
def test_ldexp_does_not_overflow_on_its_way(x: float, exponent: float, expected: float) -> None:
    found = plugrad.ldexp(plugrad.tensor([x]), plugrad.tensor([exponent]))
    assert found.tolist() == pytest.approx([expected], rel=1e-6)


def test_ldexp_has_the_gradients_of_the_product() -> None:
    x = plugrad.tensor([1.5, -2.0], dtype=plugrad.float64, requires_grad=True)
    exponent = plugrad.tensor([3.25, -4.5], dtype=plugrad.float64, requires_grad=True)
    assert plugrad.autograd.gradcheck(plugrad.ldexp, (x, exponent))
    assert plugrad.autograd.gradgradcheck(plugrad.ldexp, (x, exponent))


def test_a_stack_of_nothing_names_the_function() -> None:
    with pytest.raises(RuntimeError, match=r"^column_stack expects a non-empty TensorList"):
        plugrad.column_stack([])
