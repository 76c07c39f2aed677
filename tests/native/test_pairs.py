"""Arithmetic and comparisons of two arrays: how they broadcast, what they write to, nan and inf."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.drawing import drawn

pytest.importorskip("plugrad_native.compiled")

UFUNCS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
EDGES = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 3e38, 1e-40]
# The shapes of two operands.
BROADCAST = [
    ((), ()),
    ((5,), ()),
    ((3, 4), (3, 4)),
    ((3, 4), (4,)),
    ((1, 4), (4,)),
    ((3, 4), (1, 4)),
    ((3, 4), (3, 1)),
    ((3, 4), (1, 1)),
    ((2, 3, 4, 5), (3, 1, 1)),
    ((2, 3, 4, 5), (1, 3, 4, 1)),
    ((2, 3, 4, 5), (4, 5)),
    ((2, 3, 4, 5), (2, 3, 1, 1)),
    ((2, 1, 4), (2, 1, 1)),
    ((0, 4), (4,)),
    ((3, 0), (3, 1)),
    # Of these neither has the result's, or the smaller one is not repeated in one piece.
    ((3, 1), (1, 4)),
    ((3, 1), (4,)),
    ((2, 3, 4), (2, 1, 4)),
    ((5, 7, 1), (5, 1, 6)),
    ((2, 1, 4, 1), (3, 1, 5)),
    ((2, 3, 1, 5, 1), (1, 3, 4, 1, 1)),
]
DECLINED = [
    ((3,), (4,)),
    ((0, 1), (1, 4)),
]


@pytest.fixture(autouse=True)
def silent() -> Any:
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.parametrize(("large", "small"), BROADCAST, ids=str)
def test_one_operand_is_repeated_to_the_shape_of_the_other(
    kernels: Any, draw: Any, name: str, large: Any, small: Any
) -> None:
    a, b = draw(*large), draw(*small)
    for x, y in ((a, b), (b, a)):
        found = getattr(kernels, name)(x, y)
        expected = np.asarray(UFUNCS[name](x, y))
        assert (type(found), found.dtype) == (np.ndarray, expected.dtype)
        np.testing.assert_array_equal(found, expected)
        out = np.empty_like(found)
        assert getattr(kernels, name)(x, y, out=out) is out
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("name", UFUNCS)
def test_inf_nan_and_numbers(kernels: Any, draw: Any, name: str) -> None:
    edges = np.array(EDGES).astype(draw(1).dtype)
    grid = np.repeat(edges[None], len(edges), 0)
    expected = UFUNCS[name](grid, edges[:, None])
    np.testing.assert_array_equal(getattr(kernels, name)(grid, edges[:, None].copy()), expected)
    for number in (*EDGES, 3, True, -1, 10**25):
        as_array = np.array(number).astype(edges.dtype)
        found = getattr(kernels, name)(edges, number)
        np.testing.assert_array_equal(found, UFUNCS[name](edges, as_array))
        found = getattr(kernels, name)(number, edges)
        np.testing.assert_array_equal(found, UFUNCS[name](as_array, edges))


@pytest.mark.parametrize(("left", "right"), DECLINED, ids=str)
def test_what_does_not_fit_or_is_empty_is_declined(
    kernels: Any, draw: Any, left: Any, right: Any
) -> None:
    assert kernels.add(draw(*left), draw(*right)) is NotImplemented


def test_expanded_operands_count_as_what_they_repeat(kernels: Any, draw: Any) -> None:
    a = draw(6, 5)
    for other in (draw(1, 1), draw(6, 1), draw(1, 5)):
        np.testing.assert_array_equal(kernels.mul(np.broadcast_to(other, (6, 5)), a), other * a)
    assert kernels.mul(a.T, a.T) is NotImplemented
    assert kernels.mul(a[::-1], a[::-1]) is NotImplemented


def test_rows_of_larger_arrays(kernels: Any, draw: Any) -> None:
    a, b = draw(6, 9), draw(6, 9)
    for x, y in ((a[:, :5], b[:, :5]), (a[::2, 3:8], b[1:2, :5]), (a[:, :1], b[::3, 2:6][:1])):
        for one, other in ((x, y), (y, x)):
            np.testing.assert_array_equal(kernels.sub(one, other), one - other)
    for x, y in ((a[:, ::2], b[:, ::2]), (a[:, 1], b[:, 1]), (a[::-1, :5], b[:, :5])):
        assert kernels.sub(x, y) is NotImplemented
    # In another order than that of rows, the result would be, too.
    assert kernels.sub(a.T, b.T) is NotImplemented
    assert kernels.sub(a.T[:, :1], b[:1]).flags.c_contiguous


def test_crossed_operands_in_place(kernels: Any, draw: Any) -> None:
    a, b = draw(2, 3, 4), draw(2, 1, 4)
    expected = a + b
    assert kernels.add_(a, b) is a
    np.testing.assert_array_equal(a, expected)
    before = a.copy()
    assert kernels.add_(a, a[:, :1]) is NotImplemented  # would be read after it was written
    assert kernels.add(a[:, :1], a[:1], out=a) is NotImplemented
    assert kernels.add_(b, a) is NotImplemented
    np.testing.assert_array_equal(a, before)


def test_threads_share_crossed_operands(kernels: Any, draw: Any) -> None:
    a, b = draw(70, 90, 1), draw(70, 1, 110)
    kernels.use_thread_count(lambda: 3)
    try:
        for _ in range(5):
            np.testing.assert_array_equal(kernels.mul(a, b), a * b)
    finally:
        kernels.use_thread_count(None)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_in_place(kernels: Any, draw: Any, name: str) -> None:
    function = getattr(kernels, name + "_")
    for other in (draw(4, 6), draw(6), draw(4, 1), 2.5, 3, True):
        a = draw(4, 6)
        expected = UFUNCS[name](a, np.asarray(other, a.dtype))
        assert function(a, other) is a
        np.testing.assert_array_equal(a, expected)
    a = draw(4, 6)
    expected = UFUNCS[name](a, a)
    assert function(a, a) is a
    np.testing.assert_array_equal(a, expected)


def test_what_would_be_read_after_it_was_written_is_declined(kernels: Any, draw: Any) -> None:
    a = draw(4, 6)
    before = a.copy()
    for other in (a[0], a[:, :1], a[1, 2:3], a.reshape(-1)[3:9]):
        assert kernels.add_(a, other) is NotImplemented
    long = draw(30)
    kept = long.copy()
    assert kernels.add_(long[:20], long[5:25]) is NotImplemented
    assert kernels.add(long[:20], long[5:25], out=long[10:30]) is NotImplemented
    assert kernels.exp(long[:20], out=long[10:30]) is NotImplemented
    np.testing.assert_array_equal(a, before)
    np.testing.assert_array_equal(long, kept)


def test_an_unfit_out_is_declined(kernels: Any, draw: Any) -> None:
    a = draw(3, 4)
    locked = np.empty_like(a)
    locked.flags.writeable = False
    other = np.float64 if a.dtype == np.float32 else np.float32
    outs: list[Any] = [np.empty((4, 3), a.dtype), np.empty((3, 4), other), locked, 3, "out"]
    outs += [np.empty((4, 3), a.dtype).T, np.empty(12, a.dtype)]
    for out in outs:
        assert kernels.add(a, a, out=out) is NotImplemented
        assert kernels.neg(a, out=out) is NotImplemented
    assert kernels.add(a, a, where=a) is NotImplemented
    assert kernels.neg(a, where=a) is NotImplemented
    np.testing.assert_array_equal(kernels.add(a, a, out=None), a + a)


@drawn(300)
@given(
    shape=st.lists(st.integers(1, 5), max_size=5),
    kept=st.lists(st.booleans(), min_size=5, max_size=5),
    cut=st.integers(0, 5),
)
def test_any_operand_is_served_right_or_declined(
    shape: list[int], kept: list[bool], cut: int
) -> None:
    from plugrad_native import compiled

    subtract = compiled.kernel("sub")
    generator = np.random.default_rng(len(shape))
    a = generator.standard_normal(shape)
    part = [size if keep else 1 for size, keep in zip(shape, kept, strict=False)][cut:]
    b = generator.standard_normal(part)
    pairs = [(a, b), (b, a), (a, b.T)]
    pairs += [(a[:1], b), (a.swapaxes(0, -1), b), (a[..., :1], b)] if shape else []
    for x, y in pairs:
        try:
            expected = x - y
        except ValueError:  # they do not fit
            assert subtract(x, y) is NotImplemented
            continue
        found = subtract(x, y)
        if found is not NotImplemented:
            np.testing.assert_array_equal(found, expected)
            assert found.strides == expected.strides
