"""assert_close: what is close, and PyTorch's messages where it is not."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad
from plugrad.testing import assert_close

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]  # the oracle is optional

Pair = Callable[[Any], tuple[Any, Any]]

CLOSE: dict[str, Pair] = {
    "equal": lambda lib: (lib.tensor([1.0, 2.0]), lib.tensor([1.0, 2.0])),
    "within_tolerance": lambda lib: (lib.tensor([1.0]), lib.tensor([1.0 + 1e-6])),
    "infinities": lambda lib: (lib.tensor([math.inf]), lib.tensor([math.inf])),
    "integers": lambda lib: (lib.tensor([1, 2]), lib.tensor([1, 2])),
    "booleans": lambda lib: (lib.tensor([True]), lib.tensor([True])),
    "complex": lambda lib: (lib.tensor([1j]), lib.tensor([1j])),
    "empty": lambda lib: (lib.zeros(0, 3), lib.zeros(0, 3)),
    "sequences": lambda lib: ([lib.ones(1), 2.0], [lib.ones(1), 2.0]),
    "mappings": lambda lib: ({"a": lib.ones(1)}, {"a": lib.ones(1)}),
    "numbers": lambda lib: (1.0, 1.0 + 1e-9),
    "none": lambda lib: (None, None),
    "arrays": lambda lib: (np.ones(2), np.ones(2)),
    "requires_grad": lambda lib: (lib.ones(1, requires_grad=True), lib.ones(1)),
}

DIFFERENT: dict[str, Pair] = {
    "one_element": lambda lib: (lib.tensor([1.0, 2.0, 3.0]), lib.tensor([1.0, 2.0, 4.0])),
    "float64": lambda lib: (
        lib.tensor([[1.0, 2.0, 3.0]], dtype=lib.float64),
        lib.tensor([[1.0, 5.0, 4.0]], dtype=lib.float64),
    ),
    "float16": lambda lib: (
        lib.tensor([1.0, 2.0], dtype=lib.float16),
        lib.tensor([1.0, 2.5], dtype=lib.float16),
    ),
    "scalar_tensors": lambda lib: (lib.tensor(1.0), lib.tensor(2.0)),
    "integers": lambda lib: (lib.tensor([1, 2]), lib.tensor([1, 3])),
    "unsigned_below": lambda lib: (
        lib.tensor([1], dtype=lib.uint8),
        lib.tensor([3], dtype=lib.uint8),
    ),
    "booleans": lambda lib: (lib.tensor([True]), lib.tensor([False])),
    "complex": lambda lib: (lib.tensor([1j]), lib.tensor([2j])),
    "nan": lambda lib: (lib.tensor([math.nan]), lib.tensor([math.nan])),
    "dtype": lambda lib: (lib.tensor([1, 2]), lib.tensor([1.0, 2.0])),
    "shape": lambda lib: (lib.tensor([1, 2]), lib.tensor([1])),
    "in_a_list": lambda lib: (
        [lib.tensor([1]), lib.tensor([1])],
        [lib.tensor([1]), lib.tensor([2])],
    ),
    "in_a_mapping": lambda lib: ({"a": [lib.tensor([1])]}, {"a": [lib.tensor([2])]}),
    "keys": lambda lib: ({"a": 1}, {"b": 1}),
    "lengths": lambda lib: ([1], [1, 2]),
    "floats": lambda lib: (1.0, 2.0),
    "ints": lambda lib: (1, 2),
    "types_of_numbers": lambda lib: (1, 1.0),
    "none": lambda lib: (None, 1.0),
    "text": lambda lib: ("a", "a"),
    "tensor_and_list": lambda lib: (lib.tensor([1.0]), [1.0]),
}


def outcome(function: Any, *args: Any, **kwargs: Any) -> tuple[str, str]:
    try:
        function(*args, **kwargs)
    except Exception as error:
        text = re.sub(r"plugrad\.(_shells\.)?", "torch.", str(error))
        return type(error).__name__, text
    return "", ""


@pytest.mark.parametrize("name", CLOSE)
def test_close(name: str) -> None:
    assert_close(*CLOSE[name](plugrad))


@pytest.mark.parametrize("name", DIFFERENT)
def test_different(name: str) -> None:
    with pytest.raises((AssertionError, TypeError)):
        assert_close(*DIFFERENT[name](plugrad))


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed: make test ORACLE=torch")
@pytest.mark.parametrize("name", DIFFERENT)
def test_messages_are_those_of_torch(name: str) -> None:
    ours = outcome(assert_close, *DIFFERENT[name](plugrad))
    assert ours == outcome(torch.testing.assert_close, *DIFFERENT[name](torch))


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed: make test ORACLE=torch")
@pytest.mark.parametrize(
    "options",
    [
        {"rtol": 0, "atol": 0.1},
        {"rtol": 1.0, "atol": 0.0},
        {"rtol": 1.0},
        {"atol": 1.0},
        {"rtol": 0.0, "atol": 0.0},
        {"msg": "mine"},
        {"msg": lambda text: "mine: " + text},
    ],
)
def test_options_mean_what_they_mean_in_torch(options: dict[str, Any]) -> None:
    ours = outcome(assert_close, *DIFFERENT["one_element"](plugrad), **options)
    theirs = outcome(torch.testing.assert_close, *DIFFERENT["one_element"](torch), **options)
    assert ours == theirs


def test_equal_nan() -> None:
    assert_close(plugrad.tensor([math.nan]), plugrad.tensor([math.nan]), equal_nan=True)
    assert_close(math.nan, math.nan, equal_nan=True)


def test_dtypes_may_be_left_unchecked() -> None:
    assert_close(plugrad.tensor([1, 2]), plugrad.tensor([1.0, 2.0]), check_dtype=False)
    assert_close(1, 1.0, check_dtype=False)


def test_strides_are_checked_on_request() -> None:
    a, b = plugrad.ones(2, 3).t(), plugrad.ones(3, 2)
    assert_close(a, b)
    with pytest.raises(AssertionError, match=r"attribute 'stride\(\)' do not match"):
        assert_close(a, b, check_stride=True)


def test_subclasses_may_be_refused() -> None:
    parameter = plugrad.nn.Parameter(plugrad.ones(1))
    assert_close(parameter, plugrad.ones(1))
    with pytest.raises(TypeError, match="No comparison pair was able to handle"):
        assert_close(parameter, plugrad.ones(1), allow_subclasses=False)


def test_where_it_differs_is_named() -> None:
    a = plugrad.zeros(2, 3)
    b = plugrad.zeros(2, 3)
    b[1, 2] = 5.0
    with pytest.raises(
        AssertionError, match=r"Greatest absolute difference: 5.0 at index \(1, 2\)"
    ):
        assert_close(a, b)
