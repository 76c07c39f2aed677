"""Views beside plugrad-cpu's own: shapes, strides, memory, and who may write to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("plugrad_native.compiled")

CALLS: list[tuple[str, tuple[int, ...], tuple[Any, ...]]] = [
    ("view", (3, 4), ((2, 6),)),
    ("view", (3, 4), ((1, 12, 1),)),
    ("view", (1,), ((),)),
    ("permute", (2, 3, 4), ((2, 0, 1),)),
    ("permute", (), ((),)),
    ("transpose", (2, 3, 4), (0, 2)),
    ("transpose", (2, 3, 4), (1, 1)),
    ("t", (3, 4), ()),
    ("expand", (1, 4), ((3, 4),)),
    ("expand", (4,), ((2, 3, 4),)),
    ("expand", (), ((2, 3),)),
    ("expand", (1, 4), ((0, 4),)),
    ("select", (2, 3, 4), (0, 1)),
    ("select", (2, 3, 4), (1, 2)),
    ("select", (4,), (0, 3)),
    ("slice", (4, 6), (0, 1, 3, 1)),
    ("slice", (4, 6), (1, 0, 6, 4)),
    ("slice", (4, 6), (1, 2, 2, 1)),
    ("slice", (4, 6), (0, 4, 4, 1)),
    ("unsqueeze", (2, 3, 4), (1,)),
    ("unsqueeze", (2, 3), (0,)),
    ("unsqueeze", (2, 3), (2,)),
    ("unsqueeze", (), (0,)),
    ("split", (4, 6), ((1, 3), 0)),
    ("split", (4, 6), ((2, 0, 4), 1)),
    ("split", (3, 4), ((), 0)),
    ("unbind", (2, 3, 4), (1,)),
    ("unbind", (3,), (0,)),
    ("unbind", (0, 4), (0,)),
]


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex128"])
@pytest.mark.parametrize(("name", "shape", "rest"), CALLS, ids=str)
def test_they_are_those_of_numpy(
    kernels: Any, plain: Any, name: str, shape: Any, rest: Any, dtype: str
) -> None:
    a = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    turned = np.asarray(a.T)
    for array in (a, turned) if name not in ("view", "expand", "t") and a.ndim > 1 else (a,):
        if array is turned and name != "permute":
            array = np.ascontiguousarray(array).T
        found = getattr(kernels, name)(array, *rest)
        expected = plain[name](array, *rest)
        if name in ("split", "unbind"):
            assert type(found) is tuple
            for part, wanted in zip(found, expected, strict=True):
                _check_same_view(array, part, wanted)
        else:
            _check_same_view(array, found, expected)


def _check_same_view(array: Any, found: Any, expected: Any) -> None:
    assert type(found) is np.ndarray
    assert found.dtype == expected.dtype
    assert (found.shape, found.strides) == (expected.shape, expected.strides)
    np.testing.assert_array_equal(found, expected)
    assert found.flags.writeable
    if found.size:
        assert np.shares_memory(found, array)
        assert found.__array_interface__["data"] == expected.__array_interface__["data"]


def test_what_cannot_be_written_to_stays_so(kernels: Any) -> None:
    a = np.zeros((3, 4))
    a.flags.writeable = False
    assert not kernels.select(a, 0, 1).flags.writeable


def test_memory_lives_as_long_as_its_views(kernels: Any) -> None:
    view = kernels.select(np.arange(1000).reshape(10, 100), 0, 3)
    np.testing.assert_array_equal(view, np.arange(300, 400))
    assert view.base is not None


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("view", ((5, 2),)),
        ("view", ((2**40, 2**40),)),
        ("view", ((-1, 4),)),
        ("permute", ((0, 0),)),
        ("permute", ((0,),)),
        ("permute", ((0, 2),)),
        ("transpose", (0, 2)),
        ("transpose", (-1, 0)),
        ("expand", ((4,),)),
        ("expand", ((2, 4),)),
        ("select", (2, 0)),
        ("select", (0, 3)),
        ("slice", (0, 0, 4, 1)),
        ("slice", (0, 2, 1, 1)),
        ("slice", (0, 0, 2, 0)),
        ("slice", (0, 0, 2, -1)),
    ],
    ids=str,
)
def test_what_does_not_fit_is_declined(kernels: Any, name: str, rest: Any) -> None:
    assert getattr(kernels, name)(np.zeros((3, 4)), *rest) is NotImplemented


def test_a_view_of_what_is_not_contiguous_is_declined(kernels: Any) -> None:
    assert kernels.view(np.zeros((3, 4)).T, (12,)) is NotImplemented
    assert kernels.view(np.zeros((0, 4)), (4, 0)) is NotImplemented
