"""Meshes: ranks in a grid, groups along its dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import plugrad
import plugrad.distributed as dist
from plugrad.distributed.device_mesh import DeviceMesh, init_device_mesh


def _ranks(function: Callable[[], Any], count: int) -> list[Any]:
    return dist.run_ranks(function, count)


def test_a_mesh_tells_its_shape_and_where_a_rank_is() -> None:
    def run() -> Any:
        mesh = init_device_mesh("cpu", (2, 3), mesh_dim_names=("dp", "tp"))
        assert mesh.shape == (2, 3)
        assert (mesh.ndim, mesh.size(), mesh.size(0), mesh.size(1)) == (2, 6, 2, 3)
        assert mesh.mesh.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert mesh.mesh_dim_names == ("dp", "tp")
        assert mesh.get_rank() == dist.get_rank()
        return mesh.get_coordinate(), mesh.get_local_rank("dp"), mesh.get_local_rank(1)

    expected = [((rank // 3, rank % 3), rank // 3, rank % 3) for rank in range(6)]
    assert _ranks(run, 6) == expected


def test_groups_along_dimensions_reduce_rows_and_columns() -> None:
    def run() -> Any:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
        found = []
        for name in ("rows", "columns"):
            value = plugrad.tensor([10.0 ** dist.get_rank()])
            dist.all_reduce(value, group=mesh.get_group(name))
            found.append(int(value.item()))
        return found

    assert _ranks(run, 4) == [[101, 11], [1010, 11], [101, 1100], [1010, 1100]]


def test_a_slice_is_the_line_that_the_rank_is_in() -> None:
    def run() -> Any:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        tp = mesh["tp"]
        assert tp.get_group() is mesh.get_group("tp")
        assert mesh["dp", "tp"] is mesh
        assert mesh["tp"] == tp
        assert hash(mesh["tp"]) == hash(tp)
        return tp.mesh.tolist(), mesh["dp"].mesh.tolist()

    assert _ranks(run, 4) == [
        ([0, 1], [0, 2]),
        ([0, 1], [1, 3]),
        ([2, 3], [0, 2]),
        ([2, 3], [1, 3]),
    ]


def test_two_of_three_dimensions_make_a_slice_that_can_be_flattened() -> None:
    def run() -> Any:
        mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("dp", "cp", "tp"))
        part = mesh["dp", "cp"]
        flat = part._flatten("batch")
        assert flat is mesh["batch"]
        value = plugrad.tensor([float(dist.get_rank())])
        dist.all_reduce(value, group=flat.get_group())
        return part.mesh.tolist(), flat.mesh.tolist(), value.item()

    found = _ranks(run, 8)
    assert found[0] == ([[0, 2], [4, 6]], [0, 2, 4, 6], 12.0)
    assert found[7] == ([[1, 3], [5, 7]], [1, 3, 5, 7], 16.0)


def test_a_mesh_may_leave_ranks_out() -> None:
    def run() -> Any:
        return DeviceMesh("cpu", [1, 2]).get_coordinate()

    assert _ranks(run, 3) == [None, (0,), (1,)]


def test_from_group_takes_groups_that_are_there() -> None:
    def run() -> Any:
        columns = dist.new_group([0, 1]), dist.new_group([2, 3])
        rows = dist.new_group([0, 2]), dist.new_group([1, 3])
        rank = dist.get_rank()
        mesh = DeviceMesh.from_group(
            [rows[rank % 2], columns[rank // 2]],
            "cpu",
            [[0, 1], [2, 3]],
            mesh_dim_names=("dp", "tp"),
        )
        line = DeviceMesh.from_group(dist.group.WORLD, "cpu")
        return mesh["tp"].mesh.tolist(), mesh.get_local_rank("dp"), line.size()

    assert _ranks(run, 4) == [([0, 1], 0, 4), ([0, 1], 0, 4), ([2, 3], 1, 4), ([2, 3], 1, 4)]


def test_a_mesh_makes_the_default_group_if_there_is_none() -> None:
    assert not dist.is_initialized()
    mesh = init_device_mesh("cpu", (1,))
    try:
        assert dist.is_initialized()
        assert repr(mesh) == "DeviceMesh((1,), 'cpu', ranks=[0])"
    finally:
        dist.destroy_process_group()


def test_meshes_that_cannot_be_are_refused() -> None:
    def run() -> None:
        with pytest.raises(RuntimeError, match="not be bigger than default world size 2"):
            init_device_mesh("cpu", (4,))
        with pytest.raises(RuntimeError, match="Each mesh_dim_name must be unique"):
            init_device_mesh("cpu", (1, 2), mesh_dim_names=("a", "a"))
        with pytest.raises(RuntimeError, match="should have same length"):
            init_device_mesh("cpu", (2,), mesh_dim_names=("a", "b"))
        with pytest.raises(RuntimeError, match="Device type with index is not supported"):
            init_device_mesh("cuda:0", (2,))
        with pytest.raises(RuntimeError, match="must not occur twice"):
            DeviceMesh("cpu", [0, 0])

    _ranks(run, 2)


def test_dimensions_that_do_not_exist_are_named() -> None:
    def run() -> None:
        mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("dp", "tp"))
        with pytest.raises(KeyError, match="Invalid mesh_dim_names"):
            mesh["pp"]
        with pytest.raises(KeyError, match="ascending order"):
            mesh["tp", "dp"]
        with pytest.raises(KeyError, match="'pp' does not exist"):
            mesh.get_group("pp")
        with pytest.raises(RuntimeError, match="have 2 dimensions"):
            mesh.get_group()
        with pytest.raises(RuntimeError, match="without mesh_dim_names"):
            init_device_mesh("cpu", (2,))["tp"]

    _ranks(run, 2)
