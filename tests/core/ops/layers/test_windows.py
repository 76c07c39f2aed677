"""The positions of windows, for kernels of pooling and convolution. Oracle: counting, or
PyTorch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from plugrad.plugins.windows import (
    Windows,
    convolution_windows,
    transposed_sizes,
    window_count,
)

Axis = tuple[int, int, int, int, int]


def along(max_dilation: int = 3) -> st.SearchStrategy[Axis]:
    """Size, kernel, stride, padding and dilation of a dimension; padding as pooling allows it."""
    numbers = st.tuples(
        st.integers(1, 9),
        st.integers(1, 4),
        st.integers(1, 4),
        st.integers(0, 2),
        st.integers(1, max_dilation),
    )
    return numbers.filter(lambda axis: 2 * axis[3] <= (axis[1] - 1) * axis[4] + 1)


@st.composite
def windows_of(draw: Any, max_dilation: int = 3, dimensions: int = 2) -> Windows:
    axes = draw(st.lists(along(max_dilation), min_size=1, max_size=dimensions))
    ceil_mode = draw(st.booleans())
    out = tuple(window_count(*axis, ceil_mode) for axis in axes)
    assume(min(out) >= 1)
    sizes, kernel, stride, padding, dilation = zip(*axes, strict=True)
    return Windows(sizes, kernel, stride, padding, dilation, out)


def read_places(windows: Windows, axis: int) -> list[list[int]]:
    """For each window the places that its taps read, counted from the array's first element."""
    return [
        [
            window * windows.stride[axis] + tap * windows.dilation[axis] - windows.padding[axis]
            for tap in range(windows.kernel[axis])
        ]
        for window in range(windows.out[axis])
    ]


@settings(deadline=None)
@given(along())
def test_window_count_is_of_the_windows_that_fit(axis: Axis) -> None:
    size, kernel, stride, padding, dilation = axis
    ends = range((kernel - 1) * dilation + 1, size + 2 * padding + 1, stride)
    assert max(window_count(*axis), 0) == len(ends)


@settings(deadline=None)
@given(along(), st.booleans())
def test_window_count_is_that_of_pooling_in_pytorch(axis: Axis, ceil_mode: bool) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle of this test")
    expected = window_count(*axis, ceil_mode)
    size, kernel, stride, padding, dilation = axis
    assume(expected >= 1 and 2 * padding <= kernel)  # what meta tensors take
    x = torch.empty(1, 1, size, size, device="meta")
    pooled = torch.max_pool2d(x, kernel, stride, padding, dilation, ceil_mode)
    assert pooled.shape[-1] == expected


@settings(deadline=None)
@given(along(), st.integers(1, 9))
def test_transposed_sizes_are_the_least_that_windows_fit_in(axis: Axis, count: int) -> None:
    _, *how = axis
    (size,) = transposed_sizes((count,), *[(number,) for number in how])
    assert window_count(size, *how) == count
    assert window_count(size - 1, *how) == count - 1


def test_windows_of_a_convolution_have_the_sizes_that_pytorch_gives() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle of this test")
    how = ((2, 3), (1, 0), (1, 2))
    x, weight = torch.empty(2, 4, 9, 8, device="meta"), torch.empty(4, 4, 3, 2, device="meta")
    plain = torch.convolution(x, weight, None, *how, False, (0, 0), 1)
    assert convolution_windows((9, 8), (3, 2), *how).out == tuple(plain.shape[2:])
    turned = torch.convolution(x, weight, None, *how, True, (1, 2), 1)
    windows = convolution_windows((9, 8), (3, 2), *how, True, (1, 2))
    assert windows.sizes == tuple(turned.shape[2:])
    assert windows.out == (9, 8)


@settings(deadline=None)
@given(windows_of())
def test_places_are_what_taps_read(windows: Windows) -> None:
    for axis in range(len(windows.sizes)):
        expected = read_places(windows, axis)
        assert windows.places(axis).T.tolist() == expected
        assert windows.starts(axis).tolist() == [places[0] for places in expected]


@settings(deadline=None)
@given(windows_of(dimensions=3))
def test_places_of_taps_index_the_flattened_array(windows: Windows) -> None:
    x = np.arange(np.prod(windows.sizes)).reshape(windows.sizes)
    padded = windows.pad(np, x, -1)
    places, corners = windows.tap_places(), windows.corners()
    for number, read in enumerate(windows.reads()):
        inside = padded[read] >= 0
        np.testing.assert_array_equal(places[number][inside], padded[read][inside])
    np.testing.assert_array_equal(corners, places[0])


@settings(deadline=None)
@given(windows_of())
def test_readers_are_the_inverse_of_places(windows: Windows) -> None:
    for axis, size in enumerate(windows.sizes):
        out = windows.out[axis]
        expected = np.full((windows.kernel[axis], size), -1)
        for window, places in enumerate(read_places(windows, axis)):
            for tap, place in enumerate(places):
                if 0 <= place < size:
                    expected[tap, place] = tap * out + window
        np.testing.assert_array_equal(windows.readers(axis), expected)


@settings(deadline=None)
@given(windows_of(), st.sampled_from([0, -7]))
def test_reads_index_the_padded_array_tap_by_tap(windows: Windows, fill: int) -> None:
    x = np.arange(1, 1 + 2 * np.prod(windows.sizes)).reshape((2, *windows.sizes))
    padded = windows.pad(np, x, fill)
    assert padded.shape == (2, *windows.padded())
    np.testing.assert_array_equal(padded[windows.interior()], x)
    reads = windows.reads()
    assert len(reads) == len(windows.taps())
    for tap, read in zip(windows.taps(), reads, strict=True):
        found = padded[read]
        assert found.shape == (2, *windows.out)
        for window in itertools.product(*[range(count) for count in windows.out]):
            place = [read_places(windows, i)[window[i]][tap[i]] for i in range(len(tap))]
            inside = all(0 <= at < size for at, size in zip(place, windows.sizes, strict=True))
            expected = x[(..., *place)] if inside else fill
            np.testing.assert_array_equal(found[(..., *window)], expected)


@settings(deadline=None)
@given(windows_of())
def test_edges_are_what_pad_puts_around(windows: Windows) -> None:
    x = np.ones(windows.sizes)
    padded = np.pad(x, windows.edges(), constant_values=5.0)
    np.testing.assert_array_equal(windows.pad(np, x, 5.0), padded)


def test_what_windows_read_no_further_than_is_not_copied() -> None:
    x = np.ones((3, 4, 6))
    assert Windows((4, 6), (2, 3), (2, 3), (0, 0), (1, 1), (2, 2)).pad(np, x, 0) is x


@settings(deadline=None)
@given(windows_of())
def test_taps_are_in_the_order_of_memory(windows: Windows) -> None:
    numbers = [int(np.ravel_multi_index(tap, windows.kernel)) for tap in windows.taps()]
    assert numbers == list(range(int(np.prod(windows.kernel))))


@settings(deadline=None)
@given(windows_of())
def test_extents_reach_from_the_first_start_to_the_last(windows: Windows) -> None:
    for axis, extent in enumerate(windows.extents()):
        starts = windows.starts(axis)
        assert extent == starts[-1] - starts[0] + 1


@settings(deadline=None)
@given(windows_of())
def test_disjoint_windows_share_no_element(windows: Windows) -> None:
    assume(windows.disjoint())
    for axis in range(len(windows.sizes)):
        places = list(itertools.chain(*read_places(windows, axis)))
        assert len(set(places)) == len(places)


def test_windows_side_by_side_are_disjoint_and_overlapping_ones_are_not() -> None:
    assert Windows((6,), (2,), (2,), (0,), (1,), (3,)).disjoint()
    assert not Windows((6,), (3,), (2,), (0,), (1,), (2,)).disjoint()
    assert not Windows((6, 6), (2, 2), (2, 1), (0, 0), (1, 1), (3, 5)).disjoint()


@settings(deadline=None)
@given(windows_of(max_dilation=1), st.booleans())
def test_divisor_counts_what_windows_average(windows: Windows, count_include_pad: bool) -> None:
    counts = []
    for axis, size in enumerate(windows.sizes):
        pad = windows.padding[axis] if count_include_pad else 0
        inside = [
            sum(-pad <= place < size + pad for place in places)
            for places in read_places(windows, axis)
        ]
        counts.append(np.array(inside))
    expected = counts[0] if len(counts) == 1 else np.multiply.outer(*counts)
    found = windows.divisor(count_include_pad)
    np.testing.assert_array_equal(np.broadcast_to(found, windows.out), expected)
    full = int(np.prod(windows.kernel))
    assert isinstance(found, int) == bool((expected == full).all())


def test_divisor_that_is_given() -> None:
    assert Windows((4,), (2,), (2,), (1,), (1,), (3,)).divisor(False, 5) == 5
