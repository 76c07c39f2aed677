"""Warnings of the core point to the program's line; compiled functions have no frames to count."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plugrad


def leaf() -> Any:
    return plugrad.ones(3, requires_grad=True)


def read_only() -> Any:
    array = np.ones(3)
    array.flags.writeable = False
    return array


CASES: dict[str, Callable[[], object]] = {
    "tensor of a tensor": lambda: plugrad.tensor(plugrad.ones(2)),
    "new_tensor of a tensor": lambda: plugrad.ones(2).new_tensor(plugrad.ones(2)),
    "grad of a tensor that is no leaf": lambda: (leaf() * 2).grad,
    "number of a tensor that requires grad": lambda: float(leaf().sum()),
    "a mask of bytes": lambda: plugrad.ones(3)[plugrad.ones(3, dtype=plugrad.uint8)],
    "a write at a mask of bytes": lambda: plugrad.ones(3).__setitem__(
        plugrad.ones(3, dtype=plugrad.uint8), 0.0
    ),
    "an index that is a list": lambda: plugrad.ones(3, 3)[[slice(0, 1), slice(0, 2)]],
    "out= of another shape": lambda: plugrad.exp(plugrad.ones(3), out=plugrad.ones(2)),
    "out= of an overload": lambda: plugrad.sum(plugrad.ones(3, 2), 0, out=plugrad.ones(1)),
    "a deprecated function": lambda: plugrad.chain_matmul(plugrad.ones(2, 2), plugrad.ones(2, 2)),
    "a deprecated order": lambda: plugrad.add(plugrad.ones(2), 2, plugrad.ones(2)),
    "an array that cannot be written": lambda: plugrad.from_numpy(read_only()),
    "a buffer that cannot be written": lambda: plugrad.frombuffer(b"12345678", dtype=plugrad.uint8),
    "a precision that is none": lambda: plugrad.set_float32_matmul_precision("best"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_warning_points_to_the_programs_line(name: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CASES[name]()
    assert [warning.filename for warning in caught] == [__file__]
