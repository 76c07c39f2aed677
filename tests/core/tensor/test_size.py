"""Size: a tuple of ints that prints as plugrad's and has `numel()`."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import pytest

import plugrad


def test_shape_is_a_size_and_equals_the_plain_tuple() -> None:
    shape = plugrad.zeros(2, 3).shape
    assert isinstance(shape, plugrad.Size)
    assert shape == (2, 3)
    assert hash(shape) == hash((2, 3))
    assert repr(shape) == "plugrad.Size([2, 3])"


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda size: size[1:], "plugrad.Size([3])"),
        (lambda size: operator.add(size, (4,)), "plugrad.Size([2, 3, 4])"),
        (lambda size: operator.add((4,), size), "plugrad.Size([4, 2, 3])"),
        (lambda size: size * 2, "plugrad.Size([2, 3, 2, 3])"),
        (lambda size: 2 * size, "plugrad.Size([2, 3, 2, 3])"),
        (lambda size: copy.deepcopy(size), "plugrad.Size([2, 3])"),
        (lambda size: pickle.loads(pickle.dumps(size)), "plugrad.Size([2, 3])"),
        (lambda size: size[-1], "3"),
    ],
)
def test_what_is_made_from_a_size_is_a_size(made: Any, expected: str) -> None:
    assert repr(made(plugrad.Size([2, 3]))) == expected


def test_numel_is_the_product_of_the_lengths() -> None:
    assert plugrad.Size([2, 3, 4]).numel() == 24
    assert plugrad.Size().numel() == 1
    assert plugrad.Size([2, 0]).numel() == 0


def test_items_that_are_no_integers_are_refused() -> None:
    with pytest.raises(TypeError, match=r"takes an iterable of 'int' \(item 1 is 'str'\)"):
        plugrad.Size([2, "a"])
    with pytest.raises(TypeError, match=r"\(item 0 is 'float'\)"):
        plugrad.Size([2.0])


def test_integer_like_items_become_ints() -> None:
    size = plugrad.Size([True, plugrad.tensor(3)])
    assert [type(length) for length in size] == [int, int]
    assert size == (1, 3)
