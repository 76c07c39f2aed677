"""Convolutions by compiled loops. Oracle: those by columns and matrix products, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plugrad
from plugrad.plugins.windows import Windows, convolution_windows

pytest.importorskip("plugrad_cpu")
pytest.importorskip("numba")

from plugrad_cpu import compiled
from plugrad_cpu.kernels import convolution
from plugrad_cpu.numerics import correlation, threads
from plugrad_cpu.numerics.correlation import (
    Correlation,
    correlate,
    input_gradient,
    weight_gradient,
)

Array = Any
Axis = tuple[int, int, int, int, int]


def axes() -> st.SearchStrategy[Axis]:
    """Size, kernel, stride, padding and dilation of a dimension; sizes around the vectors'
    sizes."""
    sizes = st.one_of(st.integers(1, 12), st.sampled_from([15, 16, 17, 32, 33, 50, 64]))
    numbers = st.tuples(
        sizes, st.integers(1, 4), st.integers(1, 3), st.integers(0, 4), st.integers(1, 3)
    )
    return numbers.filter(lambda axis: axis[0] + 2 * axis[3] > (axis[1] - 1) * axis[4])


@st.composite
def convolutions(draw: Any) -> tuple[Windows, int, Array, Array, Array]:
    """Windows, groups, and an input, filters and a gradient in float32 or float64."""
    windows = convolution_windows(
        *zip(*draw(st.lists(axes(), min_size=1, max_size=3)), strict=True)
    )
    groups = draw(st.integers(1, 3))
    channels, filters = draw(st.integers(1, 3)), draw(st.integers(1, 10))
    count = draw(st.sampled_from([1, 2, 3, 8, 11, 16]))  # from eight on, small images are turned
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    shapes = (
        (count, groups * channels, *windows.sizes),
        (groups * filters, channels, *windows.kernel),
        (count, groups * filters, *windows.out),
    )
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return windows, groups, *(generator.standard_normal(s).astype(dtype) for s in shapes)


def assert_equal(found: Array, expected: Array, dtype: Any) -> None:
    assert found.dtype == dtype
    slack = 1e-4 if dtype == np.float32 else 1e-12
    scale = max(1.0, abs(expected).max(initial=0))
    np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=slack * scale)


def wide(array: Array) -> Array:
    return array.astype(np.float64)


@settings(deadline=None, max_examples=60)
@given(convolutions())
def test_loops_give_what_columns_give(case: Any) -> None:
    windows, groups, x, weight, grad = case
    loops, plan = compiled.loops("convolution"), Correlation.of(windows)
    geometry = convolution._Geometry(windows)
    bias = weight.reshape(len(weight), -1)[:, 0].copy()
    expected = convolution._forward(wide(x), wide(weight), wide(bias), geometry, groups)
    assert_equal(correlate(loops, x, weight, bias, plan, groups), expected, x.dtype)
    expected = convolution._input_gradient(wide(grad), wide(weight), geometry, groups)
    assert_equal(input_gradient(loops, grad, weight, plan, groups), expected, x.dtype)
    expected = convolution._weight_gradient(wide(grad), wide(x), weight.shape, geometry, groups)
    found = weight_gradient(loops, grad, x, weight.shape, plan, groups)
    assert_equal(found, expected, x.dtype)


@pytest.mark.parametrize("count", [1, 8, 16])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_element_that_only_padding_surrounds_has_no_gradient(count: int, axis: int) -> None:
    axes = [(1, 1, 1, 0, 1)] * 3
    axes[axis] = (1, 2, 2, 2, 3)  # windows read places 0 and 3 of five; the element is at 2
    windows = convolution_windows(*zip(*axes, strict=True))
    grad = np.ones((count, 2, 1, 1, 1), np.float32)
    weight = np.ones((2, 1, *windows.kernel), np.float32)
    loops = compiled.loops("convolution")
    found = input_gradient(loops, grad, weight, Correlation.of(windows), 1)
    np.testing.assert_array_equal(found, np.zeros((count, 1, 1, 1, 1), np.float32))


def large() -> tuple[Windows, Array, Array, Array]:
    """A convolution that is large enough for loops, with infinities and a NaN in its input."""
    generator = np.random.default_rng(0)
    windows = convolution_windows((40, 40), (3, 3), (1, 1), (1, 1), (1, 1))
    x = generator.standard_normal((5, 8, 40, 40)).astype(np.float32)
    x[0, 1, 3, 39], x[1, 2, 0, 0], x[4, 7, 39, 20] = np.inf, -np.inf, np.nan
    weight = generator.standard_normal((10, 8, 3, 3)).astype(np.float32)
    return windows, x, weight, generator.standard_normal((5, 10, 40, 40)).astype(np.float32)


def test_infinities_and_nan_reach_the_windows_that_read_them() -> None:
    windows, x, weight, _ = large()
    found = convolution.convolution(x, weight, None, windows, False, 1)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = np.zeros_like(found)
    with np.errstate(invalid="ignore"):
        for i, j in np.ndindex(3, 3):
            read = padded[:, :, i : i + 40, j : j + 40]
            expected += np.einsum("nchw,oc->nohw", read, weight[:, :, i, j])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    "shape", [(5, 40), (80, 8), (2, 48), (2, 40)], ids=["samples", "turned", "slots", "bands"]
)
def test_parts_on_threads_give_the_same(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int]
) -> None:
    count, side = shape
    generator = np.random.default_rng(0)
    windows = convolution_windows((side, side), (3, 3), (1, 1), (1, 1), (1, 1))
    x, grad = generator.standard_normal((2, count, 8, side, side)).astype(np.float32)
    weight = generator.standard_normal((8, 8, 3, 3)).astype(np.float32)
    loops, plan = compiled.loops("convolution"), Correlation.of(windows)
    assert plan.turns(count) == (side == 8)
    monkeypatch.setattr(correlation, "_PART", 1)
    found = []
    for threads_ in (1, 3):
        monkeypatch.setattr(correlation, "thread_count", lambda number=threads_: number)
        forward = correlate(loops, x, weight, None, plan, 1)
        found.append((forward, weight_gradient(loops, grad, x, weight.shape, plan, 1)))
    for one, many in zip(*found, strict=True):
        np.testing.assert_allclose(one, many, rtol=1e-4, atol=1e-2)


def test_parts_cover_the_range_in_order() -> None:
    parts = threads.in_parts(lambda first, last: (first, last), 7, threads=2, parts=3)
    assert parts == [(0, 2), (2, 4), (4, 7)]


def test_an_error_in_a_part_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        threads.in_parts(lambda first, last: 1 // first, 7, threads=2, parts=7)


def test_small_arrays_and_other_dtypes_do_not_load_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> Any:
        raise LookupError(name)

    monkeypatch.setattr(convolution, "loops", refuse)
    windows, _, weight, x = large()
    small = convolution_windows((8, 8), (3, 3), (1, 1), (1, 1), (1, 1))
    convolution.convolution(x[:, :8, :8, :8], weight, None, small, False, 1)
    x = x[:, :8]
    many = x.astype(np.complex64), weight.astype(np.complex64)
    convolution.convolution(*many, None, windows, False, 1)
    with pytest.raises(LookupError, match="convolution"):
        convolution.convolution(x, weight, None, windows, False, 1)


def test_capability_default_does_without_loops() -> None:
    with plugrad.config.set(cpu_capability="default"):
        assert compiled.loops.__wrapped__("convolution") is None
