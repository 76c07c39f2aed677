"""fully_shard on modules with parameters that are DTensors already: tensor parallel layers."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plugrad
import plugrad.distributed as dist
from plugrad import nn
from plugrad.distributed import checkpoint
from plugrad.distributed.device_mesh import DeviceMesh, init_device_mesh
from plugrad.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from plugrad.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from plugrad.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from tests.distributed.fully_sharded.parallel_program import Model, alone, shard, train
from tests.distributed.sharded_training import on_ranks, wholes
from tests.distributed.training import adam, agree, filled, numbers, sgd, values
from tests.distributed.under_mpi import needs_mpi, run

R = Replicate()


def _grid() -> Any:
    return init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))


def _model() -> Any:
    return filled(Model())


@pytest.mark.parametrize("make", [sgd, adam])
def test_training_equals_that_of_one_process(make: Any) -> None:
    def program(net: Any) -> list[Any]:
        mesh = _grid()
        shard(net, mesh, mesh["dp"])
        train(net, make, mesh["dp"].get_local_rank(), 2)
        return wholes(net)

    expected = alone(make)
    for found in on_ranks(4, _model(), program):
        agree(found, expected)


def test_replicas_of_tensor_parallel_shards() -> None:
    def program(net: Any) -> list[Any]:
        mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("replicas", "shards", "tp"))
        shard(net, mesh, mesh["replicas", "shards"])
        assert net.block.up.weight.placements == (R, Shard(0), Shard(0))
        share = mesh["replicas"].get_local_rank() * 2 + mesh["shards"].get_local_rank()
        train(net, adam, share, 4)
        return wholes(net)

    expected = alone(adam)
    for found in on_ranks(8, _model(), program):
        agree(found, expected)


def test_neighbours_gather_for_backward_beside_tensor_parallel_ranks() -> None:
    def program(net: Any) -> list[Any]:
        mesh = init_device_mesh("cpu", (4, 2), mesh_dim_names=("dp", "tp"))
        shard(net, mesh, mesh["dp"], reshard_after_forward=2)
        train(net, adam, mesh["dp"].get_local_rank(), 4)
        return wholes(net)

    expected = alone(adam)
    for found in on_ranks(8, _model(), program):
        agree(found, expected)


def test_a_flattened_dimension_of_the_mesh_cuts_too() -> None:
    def program(net: Any) -> list[Any]:
        mesh = init_device_mesh("cpu", (2, 1, 2), mesh_dim_names=("a", "b", "tp"))
        data = mesh["a", "b"]._flatten("dp")
        shard(net, mesh, data)
        assert net.block.up.weight.device_mesh.mesh_dim_names == ("tp", "dp")
        train(net, adam, data.get_local_rank(), 2)
        return wholes(net)

    expected = alone(adam)
    for found in on_ranks(4, _model(), program):
        agree(found, expected)


def test_parameters_lie_on_both_meshes_and_are_dtensors_in_forward() -> None:
    def program(net: Any) -> Any:
        mesh = _grid()
        shard(net, mesh, mesh["dp"])
        during: list[Any] = []
        net.block.up.register_forward_pre_hook(
            lambda module, args: during.append((module.weight.device_mesh, module.weight))
        )
        net(values(0, 2, 4, 4)).sum().backward()
        weight = net.block.up.weight
        assert weight.device_mesh.mesh_dim_names == ("tp", "dp")
        assert weight.placements == (Shard(0), Shard(0))
        assert net.block.down.weight.placements == (Shard(1), Shard(0))
        assert net.block.norm.weight.placements == (R, Shard(0))
        assert net.head.weight.placements == (Shard(0),)
        for parameter in net.parameters():
            assert parameter.grad.placements == parameter.placements
        (inside, whole) = during[0]
        assert inside == mesh["tp"]
        assert whole.placements == (Shard(0),)
        return tuple(weight.to_local().shape)

    # Five rows: split into three and two, and then into two, one, one and one.
    assert on_ranks(4, _model(), program) == [(2, 4), (1, 4), (1, 4), (1, 4)]


def test_gathered_parts_are_freed_after_forward() -> None:
    def program(net: Any) -> None:
        mesh = _grid()
        shard(net, mesh, mesh["dp"])
        seen: list[Any] = []
        net.block.up.register_forward_pre_hook(
            lambda module, args: seen.append(weakref.ref(module.weight.to_local()))
        )
        loss = net(values(0, 2, 4, 4)).sum()
        assert seen[0]() is None
        loss.backward()

    on_ranks(4, _model(), program)


def test_mixed_precision_gathers_in_the_lower_one() -> None:
    def program(net: Any) -> Any:
        mesh = _grid()
        parallelize_module(net, mesh["tp"], {"": ColwiseParallel()})
        policy = MixedPrecisionPolicy(plugrad.float16, plugrad.float32)
        fully_shard(net, mesh=mesh["dp"], mp_policy=policy)
        out = net(plugrad.ones(2, 4))
        assert out.dtype == plugrad.float16
        out.sum().backward()
        assert net.weight.grad.dtype == plugrad.float32
        return net.weight.grad.full_tensor().numpy()

    for found in on_ranks(4, nn.Linear(4, 4), program):
        np.testing.assert_array_equal(found, np.full((4, 4), 2.0))


def test_whole_tensors_are_cut_as_they_are_loaded() -> None:
    other = _model()
    with plugrad.no_grad():
        for parameter in other.parameters():
            parameter.add_(1.0)
    expected = numbers(other.parameters())

    def program(net: Any) -> list[Any]:
        mesh = _grid()
        shard(net, mesh, mesh["dp"])
        net.load_state_dict(other.state_dict())
        assert net.block.up.weight.placements == (Shard(0), Shard(0))
        return wholes(net)

    for found in on_ranks(4, _model(), program):
        agree(found, expected)


def test_checkpoints_are_read_by_one_process_and_back(tmp_path: Path) -> None:
    def write(net: Any) -> list[Any]:
        mesh = _grid()
        shard(net, mesh, mesh["dp"])
        optimizer = adam(net.parameters())
        net(values(1, 2, 4, 4)).sum().backward()
        optimizer.step()
        checkpoint.save({"model": net, "optimizer": optimizer}, checkpoint_id=tmp_path)
        return wholes(net)

    def read(net: Any) -> list[Any]:
        mesh = _grid()
        shard(net, mesh, mesh["dp"])
        checkpoint.load({"model": net}, checkpoint_id=tmp_path)
        return wholes(net)

    expected = on_ranks(4, _model(), write)[0]
    one = Model().double()
    checkpoint.load({"model": one}, checkpoint_id=tmp_path)
    agree(numbers(one.parameters()), expected)
    for found in on_ranks(4, Model().double(), read):
        agree(found, expected)


@needs_mpi
def test_four_processes_train_as_one_does(tmp_path: Path) -> None:
    outcome = run(Path(__file__).with_name("parallel_program.py"), 4, folder=tmp_path)
    assert outcome.code == 0, outcome.err
    expected = alone(adam)
    for rank in range(4):
        agree([np.array(one) for one in outcome.value(rank)], expected, 1e-10)


def test_meshes_that_are_no_parts_of_one_are_refused() -> None:
    def program(net: Any) -> None:
        line = init_device_mesh("cpu", (2,))
        net.weight = nn.Parameter(distribute_tensor(net.weight.detach(), line, [Shard(0)]))
        for mesh in (None, line):
            with pytest.raises(ValueError, match=r"same parent mesh but got.*'weight'"):
                fully_shard(net, mesh=mesh)

    on_ranks(2, nn.Linear(2, 2), program)


def test_a_smaller_world_needs_a_mesh_of_all_ranks() -> None:
    def program(net: Any) -> None:
        mesh = DeviceMesh("cpu", [0, 1, 2, 3])
        if dist.get_rank() < 4:
            with pytest.raises(NotImplementedError, match="does not have all 5 ranks"):
                fully_shard(net, mesh=mesh, reshard_after_forward=2)

    on_ranks(5, nn.Linear(2, 2), program)


def test_sums_that_are_not_taken_are_refused() -> None:
    def program(net: Any) -> None:
        mesh = _grid()
        made = dist.tensor.DTensor.from_local(plugrad.ones(2, 2), mesh["tp"], [Partial()])
        net.weight = nn.Parameter(made.detach())
        with pytest.raises(ValueError, match="redistribute what is Partial first"):
            fully_shard(net, mesh=mesh["dp"])

    on_ranks(4, nn.Linear(2, 2), program)
