"""`plugrad.plugins.strides` on strided memory, against NumPy's own arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plugrad.plugins import strides

Shape = tuple[int, ...]

GEOMETRIES: list[tuple[Shape, Shape, int]] = [
    ((), (), 3),
    ((4,), (2,), 1),
    ((2, 3), (3, 1), 0),
    ((3, 2), (1, 1), 2),
    ((2, 1, 3), (0, 5, 2), 0),
    ((0, 3), (3, 1), 7),
]


def seen(size: Shape, stride: Shape, offset: int) -> Any:
    memory = np.arange(40)
    steps = [step * memory.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(memory[offset:], size, steps)


@pytest.mark.parametrize("sizes", [(), (5,), (2, 3, 4), (2, 0, 3), (0,)])
def test_contiguous_strides_are_those_of_an_array_in_order(sizes: Shape) -> None:
    filled = np.zeros([max(size, 1) for size in sizes], np.int8)
    assert strides.contiguous_strides(sizes) == filled.strides


@pytest.mark.parametrize(("size", "stride", "offset"), GEOMETRIES)
def test_positions_are_where_elements_are(size: Shape, stride: Shape, offset: int) -> None:
    found = strides.strided_positions(np, size, stride, offset)
    assert found.dtype == np.int64
    assert found.shape == size
    assert (found == seen(size, stride, offset)).all()


@pytest.mark.parametrize(("size", "stride", "offset"), GEOMETRIES)
def test_the_reach_ends_behind_the_last_element(size: Shape, stride: Shape, offset: int) -> None:
    places = strides.strided_positions(np, size, stride, offset)
    assert strides.reach(size, stride, offset) == (places.max() + 1 if places.size else 0)


def test_a_view_must_stay_within_its_memory() -> None:
    strides.check_reach((2, 3), (3, 1), 2, 4, 32)
    strides.check_reach((0, 3), (3, 1), 99, 4, 0)
    with pytest.raises(
        RuntimeError, match=r"setStorage: sizes \[2, 3\], strides \[3, 1\], storage"
    ):
        strides.check_reach((2, 3), (3, 1), 3, 4, 32)


@pytest.mark.parametrize("offset", [-4, -2, -1, 0, 1, 2, 5])
@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (2, 4), (4, 2), (0, 2)])
def test_a_diagonal_runs_as_numpys_does(rows: int, columns: int, offset: int) -> None:
    matrix = np.arange(rows * columns).reshape(rows, columns)
    row, column, length = strides.diagonal_run(rows, columns, offset)
    places = np.arange(length)
    assert matrix[row + places, column + places].tolist() == matrix.diagonal(offset).tolist()


@pytest.mark.parametrize("offset", [-2, 0, 1])
@pytest.mark.parametrize("dims", [(0, 1), (1, 2), (2, 0)])
def test_the_sizes_in_which_a_diagonal_is_embedded(offset: int, dims: tuple[int, int]) -> None:
    sizes = strides.diagonal_sizes((4, 3), offset, *dims)
    taken = np.zeros(sizes).diagonal(offset, *dims)
    assert taken.shape == (4, 3)


@pytest.mark.parametrize("empty", ["added", "read", "neither"])
def test_sums_of_overlapping_places(empty: str) -> None:
    added: tuple[Shape, Shape, int] = ((3, 2), (1, 1), 1)
    read: tuple[Shape, Shape, int] = ((5,), (1,), 0)
    if empty == "added":
        added = ((3, 0), (1, 1), 1)
    if empty == "read":
        read = ((0,), (1,), 0)
    to, of, count = strides.summed_positions(np, *added, *read)
    memory = np.zeros(count, np.int64)
    np.add.at(memory, to, 1)
    wanted = {"added": [0] * 5, "read": [], "neither": [0, 1, 2, 2, 1]}
    assert memory[of].tolist() == wanted[empty]


def test_the_order_of_copies() -> None:
    dense = np.zeros((2, 3))
    assert strides.copy_order(dense) == "C"
    assert strides.copy_order(dense.T) == "K"
    assert strides.copy_order(np.broadcast_to(dense[:, :1], (2, 3))) == "C"


@pytest.mark.parametrize("target", [(24,), (2, 12), (6, 4), (3, 2, 4), (1, 24), (4, 1, 6), (8, 3)])
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (0, 2, 1), (2, 1, 0)])
def test_viewed_strides_are_those_of_numpy_s_views(order: Shape, target: Shape) -> None:
    array = np.zeros((2, 3, 4), np.int8).transpose(order)
    found = strides.viewed_strides(array.shape, array.strides, target)
    try:
        assert found == array.reshape(target, copy=False).strides
    except ValueError:
        assert found is None
