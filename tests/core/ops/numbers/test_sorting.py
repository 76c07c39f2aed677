"""Sorting of long lines, for which the CPU uses other algorithms than for short ones.

Oracle: NumPy's stable sort.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plugrad

DTYPES = ("bool", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
LENGTH = 5000


def line(dtype: str) -> Any:
    """Elements that repeat, with all that is special among them."""
    numbers = np.random.default_rng(0).standard_normal(LENGTH)
    kind = getattr(plugrad, dtype)
    if kind.is_floating_point:
        numbers[::7], numbers[1::9], numbers[2::9] = np.nan, 0.0, -0.0
        numbers[5], numbers[6] = np.inf, -np.inf
        return plugrad.tensor(numbers.round(2).tolist(), dtype=kind)
    if dtype == "int64":
        numbers[:2] = -9.0, 9.0  # its range exceeds what the dtype holds
        return plugrad.tensor((numbers * 100).astype(np.int64) * (1 << 53), dtype=kind)
    return plugrad.tensor((np.abs(numbers) * 20).astype(np.int64).tolist(), dtype=kind)


def oracle(x: Any, descending: bool) -> Any:
    keys = (x.double() if x.is_floating_point() else x).numpy()
    if not descending:
        return np.argsort(keys, 0, kind="stable")
    return (len(keys) - 1 - np.argsort(keys[::-1], 0, kind="stable"))[::-1]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sort_of_a_long_line_is_stable(dtype: str, descending: bool) -> None:
    x = line(dtype)
    expected = oracle(x, descending)
    values, indices = plugrad.sort(x, descending=descending)
    assert (indices.numpy() == expected).all()
    assert plugrad.equal(values.nan_to_num(7.0), x[indices].nan_to_num(7.0))
    columns = plugrad.stack([x, x.flip(0)], 1)
    assert (plugrad.sort(columns, 0, descending).indices[:, 0].numpy() == expected).all()


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "bool"])
def test_topk_of_a_long_line_is_the_start_of_its_order(dtype: str, largest: bool) -> None:
    x = line(dtype)
    expected = oracle(x, largest)
    for count in (1, 20, LENGTH // 2):
        found = plugrad.topk(x, count, largest=largest).indices
        assert (found.numpy() == expected[:count]).all()


def test_topk_finds_what_its_sample_of_the_line_misses() -> None:
    x = plugrad.zeros(LENGTH)
    x[::32] = 5.0
    assert plugrad.topk(x, 3, largest=False).indices.tolist() == [1, 2, 3]
    assert plugrad.topk(-x, 3).indices.tolist() == [1, 2, 3]


def test_unique_of_a_long_line_says_where_and_how_often() -> None:
    x = line("float32").nan_to_num(3.0)
    values, inverse, counts = plugrad.unique(x, return_inverse=True, return_counts=True)
    expected = np.unique(x.numpy(), return_counts=True)
    assert (values.numpy() == expected[0]).all()
    assert (counts.numpy() == expected[1]).all()
    assert plugrad.equal(values[inverse], x)
