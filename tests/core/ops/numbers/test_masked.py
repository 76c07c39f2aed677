"""Reductions and normalizations of what a mask leaves."""

from __future__ import annotations

import pytest

import plugrad
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestMasked(OpSuite):
    cases = family_cases("masked")


def test_what_is_left_out_gets_no_gradient_even_where_it_is_no_number() -> None:
    x = plugrad.tensor([1.0, float("nan"), 3.0], requires_grad=True)
    mask = plugrad.tensor([True, False, True])
    plugrad.masked.mean(x, mask=mask).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.5, 0, 0.5]


def test_something_else_than_a_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        plugrad.masked.sum(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_totals_stay_in_the_dtype_of_the_input(name: str) -> None:
    function = getattr(plugrad.masked, name)
    assert function(plugrad.ones(2, dtype=plugrad.int32), 0).dtype is plugrad.int32
    with pytest.raises(NotImplementedError, match="Bool"):
        function(plugrad.ones(2, dtype=plugrad.bool), 0)
