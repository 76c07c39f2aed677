"""Composite operators, against PyTorch and finite differences."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
from plugrad.testing.cases import family_cases
from tests.core.ops.harness import OpSuite


class TestComposites(OpSuite):
    cases = family_cases("composites")


IN_PLACE = {
    "multiply_": ("mul", "MulBackward0"),
    "divide_": ("div", "DivBackward0"),
    "true_divide_": ("div", "DivBackward0"),
    "subtract_": ("sub", "SubBackward0"),
    "arctan2_": ("atan2", "Atan2Backward0"),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_an_alias_in_place_is_the_operator_in_place(name: str) -> None:
    x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    other = plugrad.tensor([3.0, 4.0])
    y = x.clone()
    assert getattr(y, name)(other) is y
    function, node = IN_PLACE[name]
    assert y.tolist() == getattr(plugrad, function)(x, other).tolist()
    assert y.grad_fn.name() == node


@pytest.mark.parametrize("name", ["multiply_", "divide_", "true_divide_", "subtract_"])
def test_an_alias_in_place_takes_a_number(name: str) -> None:
    y = plugrad.tensor([1.0, 2.0])
    expected = getattr(plugrad, IN_PLACE[name][0])(y, 2)
    assert getattr(y, name)(2).tolist() == expected.tolist()


def test_unsafe_parts_can_be_written_to_one_by_one() -> None:
    x = plugrad.arange(4.0).requires_grad_()
    split: Any = plugrad.unsafe_split(x * 1, 2)
    assert [part._is_view() for part in split] == [False, False]
    split[0].mul_(3)
    (split[0].sum() + split[1].sum()).backward()
    assert x.grad.tolist() == [3.0, 3.0, 1.0, 1.0]


def test_a_write_through_view_as_real_reaches_the_complex_base() -> None:
    z = plugrad.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    base = z * 1
    plugrad.view_as_real(base)[:, 0].mul_(5)
    assert base.tolist() == [5 + 2j, 15 - 1j]
    base.real.sum().backward()
    assert z.grad.tolist() == [5 + 0j, 5 + 0j]


def test_broadcast_shapes() -> None:
    assert plugrad.broadcast_shapes((2, 1), (3,), 1) == (2, 3)
    assert plugrad.broadcast_shapes() == ()
    with pytest.raises(RuntimeError, match="Attempting to broadcast a dimension of length 4 at -1"):
        plugrad.broadcast_shapes((2, 1), (3,), 4)


def test_the_results_of_kthvalue_have_names() -> None:
    found = plugrad.kthvalue(plugrad.tensor([3.0, 1.0, 2.0]), 2)
    assert (found.values.item(), found.indices.item()) == (2.0, 2)
