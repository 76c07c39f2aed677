"""Special cases that the standard names: infinities, nans and signed zeros. Oracle: Python's own
arithmetic where it gives a number, and the standard's text where it raises."""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugrad import array_api as xp

INF, NAN = math.inf, math.nan
SPECIAL = st.sampled_from([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -3.0, 2.5, INF, -INF, NAN])
QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def floor_divide(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b) or (a == 0 == b) or (math.isinf(a) and math.isinf(b)):
        return NAN
    sign = math.copysign(1, a) * math.copysign(1, b)
    if math.isinf(a) or b == 0:
        return INF * sign
    if math.isinf(b) or a == 0:
        return 0.0 * sign
    return a // b


def remainder(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return NAN
    return a % b


def power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except ValueError:  # 0 to a negative power, or a negative number to a fraction
        if a != 0:
            return NAN
        return math.copysign(INF, a) if b % 2 == 1 else INF


def same(found: float, expected: float) -> bool:
    if math.isnan(expected):
        return math.isnan(found)
    if expected == 0 or math.isinf(expected):
        return found == expected and math.copysign(1, found) == math.copysign(1, expected)
    return math.isclose(found, expected, rel_tol=1e-6)


def in_place(write: Any, a: Any, b: Any) -> Any:
    changed = xp.asarray(a, copy=True)
    assert write(changed, b) is changed
    return changed


REFERENCES: dict[str, tuple[Callable[[float, float], float], str]] = {
    "floor_divide": (floor_divide, "floordiv"),
    "remainder": (remainder, "mod"),
    "pow": (power, "pow"),
}


@pytest.mark.parametrize("name", REFERENCES)
@QUICK
@given(
    a=SPECIAL,
    b=SPECIAL,
    dtype=st.sampled_from([xp.float32, xp.float64]),
    shapes=st.sampled_from([((), ()), ((1,), (1,)), ((3,), ()), ((), (3,)), ((3,), (3,)),
                            ((2, 3), (1,)), ((2, 3), (2, 1)), ((1,), (20,))]),
)  # fmt: skip
def test_every_spelling_of_an_operator(
    name: str, a: float, b: float, dtype: Any, shapes: tuple[Any, Any]
) -> None:
    reference, op = REFERENCES[name]
    function, infix = getattr(xp, name), getattr(operator, op)
    x, y = (xp.full(shape, n, dtype=dtype) for shape, n in zip(shapes, (a, b), strict=True))
    results = [
        *(function(x, y), infix(x, y), function(x, b), infix(x, b)),
        *(function(a, y), infix(a, y), in_place(getattr(operator, f"i{op}"), x, b)),
    ]
    if xp.broadcast_shapes(*shapes) == shapes[0]:
        results.append(in_place(getattr(operator, f"i{op}"), x, y))
    for found in results:
        assert type(found) is xp.Array
        assert found.dtype is dtype
        for number in xp.reshape(found, (-1,)).tolist():
            assert same(number, reference(a, b)), (number, found)


PARTS = (0.0, 1.0, -2.0, INF, -INF, NAN)


@pytest.mark.parametrize("dtype", [xp.complex64, xp.complex128])
def test_signs_of_complex_numbers_with_a_nan_are_nan_in_both_parts(dtype: Any) -> None:
    for a in PARTS:
        found = complex(xp.sign(xp.asarray(complex(a, NAN), dtype=dtype)))
        assert math.isnan(found.real)
        assert math.isnan(found.imag)
    assert complex(xp.sign(xp.asarray(3 + 4j, dtype=dtype))) == pytest.approx(0.6 + 0.8j)


@pytest.mark.parametrize("dtype", [xp.complex64, xp.complex128])
@pytest.mark.parametrize("a", PARTS)
@pytest.mark.parametrize("b", PARTS)
def test_expm1_of_complex_numbers_is_exp_less_1(a: float, b: float, dtype: Any) -> None:
    try:
        expected = cmath.exp(complex(a, b)) - 1
    except ValueError:  # of an infinite imaginary part
        expected = complex(INF if a == INF else NAN, NAN)
    found = complex(xp.expm1(xp.asarray([complex(a, b)], dtype=dtype))[0])
    for part, wanted in ((found.real, expected.real), (found.imag, expected.imag)):
        if math.isnan(wanted):
            assert math.isnan(part)
        elif math.isinf(wanted):
            assert abs(part) == INF  # the sign is open if the other part is nan
        else:
            assert part == pytest.approx(wanted, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", ["max", "min", "mean", "prod", "std", "sum", "var"])
def test_a_nan_among_the_elements_is_the_result(name: str) -> None:
    x = xp.asarray([[1.0, NAN], [2.0, 3.0]])
    assert math.isnan(float(getattr(xp, name)(x)))
    assert xp.isnan(getattr(xp, name)(x, axis=1)).tolist() == [True, False]


@pytest.mark.parametrize(
    ("name", "expected"), [("mean", NAN), ("prod", 1.0), ("std", NAN), ("sum", 0.0), ("var", NAN)]
)
@pytest.mark.filterwarnings("ignore")
def test_statistics_of_no_elements(name: str, expected: float) -> None:
    for shape in ((0,), (2, 0)):
        assert same(float(getattr(xp, name)(xp.ones(shape))), expected)
