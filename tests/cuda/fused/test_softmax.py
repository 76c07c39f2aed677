"""softmax, log_softmax and their gradients are the CPU's, whatever the shape and the dtype."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.cuda.emulation.runtime import Emulation
from tests.cuda.fused.against_cpu import DTYPES, check, random

OPERATORS = ("_softmax", "_log_softmax")
# Rows shorter and longer than a warp, a block, and what a block goes over more than once; columns.
SHAPES = [
    ((), 0),
    ((1,), 0),
    ((7,), 0),
    ((5, 33), 1),
    ((3, 1024), 1),
    ((2, 1025), 1),
    ((2, 5000), 1),
    ((9, 4), 0),
    ((3, 17, 40), 1),
    ((2, 5, 3, 2), 1),
    ((70, 2), 0),
    ((0, 3), 1),
    ((3, 0), 1),
    ((1, 1, 1), 0),
]


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("name", OPERATORS)
def test_values_and_gradients(
    emulation: Emulation, name: str, shape: tuple[int, ...], dim: int
) -> None:
    x = random(shape)
    out = check(emulation, name, x, dim, False)
    check(emulation, f"{name}_backward_data", random(shape, seed=1), out, dim, x.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "dim"), [((5, 40), 1), ((5, 40), 0)])
@pytest.mark.parametrize("name", OPERATORS)
def test_dtypes(
    emulation: Emulation, name: str, shape: tuple[int, ...], dim: int, dtype: str
) -> None:
    x = random(shape, dtype)
    out = check(emulation, name, x, dim, False)
    check(emulation, f"{name}_backward_data", random(shape, dtype, 1), out, dim, x.dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", OPERATORS)
def test_narrow_input_becomes_float32(
    emulation: Emulation, name: str, dim: int, dtype: str
) -> None:
    x = random((5, 40), dtype)
    out = check(emulation, name, x, dim, True)
    assert out.dtype == np.float32
    check(emulation, f"{name}_backward_data", random((5, 40), seed=1), out, dim, x.dtype)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", OPERATORS)
def test_any_strides(emulation: Emulation, name: str, dim: int) -> None:
    x = random((40, 6)).T[::2, ::-1]
    out = check(emulation, name, x, dim, False)
    check(emulation, f"{name}_backward_data", random(out.T.shape).T, out, dim, x.dtype)


@pytest.mark.parametrize("width", [3, 40, 2000])
@pytest.mark.parametrize("name", OPERATORS)
def test_infinities_and_nan(emulation: Emulation, name: str, width: int) -> None:
    for values in itertools.product((1.0, -np.inf, np.inf, np.nan), repeat=2):
        x = np.full((3, width), -np.inf, np.float32)
        x[0, :2] = values
        x[1, -2:] = values
        x[2] = values[0]
        with np.errstate(all="ignore"):
            check(emulation, name, x, 1, False)
            check(emulation, name, np.ascontiguousarray(x.T), 0, False)


def test_large_values_do_not_overflow(emulation: Emulation) -> None:
    x = np.array([[1e4, 1e4 - 1, -1e4], [88, 89, 90]], np.float32)
    for name in OPERATORS:
        check(emulation, name, x, 1, False)


def test_one_launch_each(emulation: Emulation) -> None:
    before = emulation.launched.total()
    out = check(emulation, "_softmax", random((3, 5)), 1, False)
    check(emulation, "_softmax_backward_data", out, out, 1, out.dtype)
    assert emulation.launched.total() == before + 2
