"""Elementwise functions of the standard. Oracle: array-api-strict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_np

import plugrad
from plugrad import array_api as xp
from tests.core.array_api.against_strict import (
    COMPLEX,
    DTYPES,
    INTEGER,
    NUMERIC,
    REAL,
    compare,
    pairs,
)

FLOATING = REAL + COMPLEX
UNARY = {
    **dict.fromkeys(
        [
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "cos",
            "cosh",
            "exp",
            "expm1",
            "log",
            "log10",
            "log1p",
            "log2",
            "reciprocal",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
        ],
        FLOATING,
    ),
    **dict.fromkeys(
        ["abs", "isfinite", "isinf", "isnan", "negative", "positive", "round", "sign", "square"],
        NUMERIC,
    ),
    **dict.fromkeys(["ceil", "floor", "trunc"], INTEGER + REAL),
    **dict.fromkeys(["conj", "imag", "real"], COMPLEX),
    "bitwise_invert": ("bool", *INTEGER),
    "logical_not": ("bool",),
    "signbit": REAL,
}
BINARY = {
    **dict.fromkeys(["add", "multiply", "subtract"], NUMERIC),
    **dict.fromkeys(["equal", "not_equal"], DTYPES),
    **dict.fromkeys(
        [
            "floor_divide",
            "greater",
            "greater_equal",
            "less",
            "less_equal",
            "maximum",
            "minimum",
            "remainder",
        ],
        INTEGER + REAL,
    ),
    **dict.fromkeys(["atan2", "copysign", "hypot", "logaddexp", "nextafter"], REAL),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], ("bool", *INTEGER)),
    **dict.fromkeys(["bitwise_left_shift", "bitwise_right_shift"], INTEGER),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], ("bool",)),
    "divide": FLOATING,
    "pow": NUMERIC,
}
# What some functions of complex numbers give at the ends of the range is left to libraries.
FINITE = st.floats(-4, 4, width=16)
ANY = FINITE | st.sampled_from([np.nan, np.inf, -np.inf, -0.0])
QUICK = settings(max_examples=12, deadline=None, derandomize=True, database=None)


def elements(dtype: str, name: str) -> Any:
    if dtype == "bool":
        return st.booleans()
    if dtype in INTEGER:
        least = 0 if name.startswith(("bitwise_left", "bitwise_right", "pow")) else -4
        numbers = st.integers(0 if dtype.startswith("u") else least, 5)
        return numbers.filter(bool) if name in ("floor_divide", "remainder") else numbers
    if dtype in COMPLEX:
        return st.builds(complex, FINITE, FINITE)
    return ANY if name != "remainder" else FINITE.filter(bool)


def arrays(draw: Any, dtype: str, name: str, shape: tuple[int, ...]) -> Any:
    return draw(st_np.arrays(dtype, shape, elements=elements(dtype, name)))


@pytest.mark.parametrize("name", UNARY)
@QUICK
@given(data=st.data())
def test_functions_of_one_array(name: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(UNARY[name]))
    shape = data.draw(st_np.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    compare(lambda lib, x: getattr(lib, name)(x), arrays(data.draw, dtype, name, shape))


@pytest.mark.parametrize("name", BINARY)
@QUICK
@given(data=st.data())
def test_functions_of_two_arrays(name: str, data: st.DataObject) -> None:
    wanted = [pair for pair in pairs() if set(pair) <= set(BINARY[name])]
    dtypes = data.draw(st.sampled_from(wanted))
    shapes = data.draw(st_np.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, max_side=3))
    a, b = (
        arrays(data.draw, dtype, name, shape)
        for dtype, shape in zip(dtypes, shapes.input_shapes, strict=True)
    )
    compare(lambda lib, x, y: getattr(lib, name)(x, y), a, b)


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_an_array_and_a_number(name: str) -> None:
    dtype = BINARY[name][-1]
    number = True if dtype == "bool" else 2 if dtype in INTEGER else 2.0
    array = np.array([1, 2, 3], dtype)
    compare(lambda lib, x: getattr(lib, name)(x, number), array)
    compare(lambda lib, x: getattr(lib, name)(number, x), array)


def test_every_function_is_tested() -> None:
    from plugrad.array_api import _elementwise

    names = {name for name in xp.__all__ if hasattr(_elementwise, name)}
    assert names - {"clip", "newaxis"} <= UNARY.keys() | BINARY.keys()


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d in INTEGER + REAL])
@pytest.mark.parametrize("bounds", [(1, 3), (None, 2), (2, None), (None, None)])
def test_clip(dtype: str, bounds: tuple[int | None, int | None]) -> None:
    compare(lambda lib, x: lib.clip(x, *bounds), np.array([0, 1, 2, 4, 5], dtype))


def test_clip_of_integers_by_bounds_that_they_do_not_reach() -> None:
    x = xp.asarray([1, 2], dtype=xp.int8)
    assert xp.clip(x, -1000, 1000).tolist() == [1, 2]
    assert xp.clip(x, 0, 1000).dtype is xp.int8


def test_quotients_of_infinities_are_signed_infinities_and_zeros() -> None:
    inf = float("inf")
    a = xp.asarray([inf, -inf, inf, 1.0, -1.0, 1.0])
    b = xp.asarray([2.0, 2.0, -2.0, inf, inf, -inf])
    found = xp.floor_divide(a, b)
    assert found.tolist() == [inf, -inf, -inf, 0, 0, 0]
    assert xp.signbit(found).tolist() == [False, True, True, False, True, True]


def test_a_remainder_of_zero_has_the_sign_of_the_divisor() -> None:
    zeros = xp.remainder(xp.asarray([0.0, -0.0, 4.0]), xp.asarray([-2.0, 2.0, -2.0]))
    assert xp.signbit(zeros).tolist() == [True, False, True]
    x = plugrad.tensor([0.0, 4.0], requires_grad=True)
    xp.sum(xp.remainder(x, -3.0)).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 1.0]


def test_operands_without_a_common_dtype_are_refused() -> None:
    a, b = xp.ones(2, dtype=xp.uint64), xp.ones(2, dtype=xp.int8)
    with pytest.raises(TypeError, match=r"plugrad.uint64 and plugrad.int8 have no common dtype"):
        xp.add(a, b)
    with pytest.raises(TypeError, match="expected an array, a dtype or a Python number, got str"):
        xp.add(a, "b")  # type: ignore[arg-type]
