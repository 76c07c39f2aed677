"""fully_shard: state dicts, checkpoints, conversions, and errors."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

import plugrad
from plugrad import nn
from plugrad.distributed import checkpoint
from plugrad.distributed.device_mesh import init_device_mesh
from plugrad.distributed.fsdp import (
    CPUOffloadPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from plugrad.distributed.tensor import Replicate, Shard
from tests.distributed.sharded_training import (
    batch,
    on_ranks,
    sharded,
    train,
    train_alone,
    whole,
    wholes,
)
from tests.distributed.training import adam, agree, filled, loss_of, mlp, numbers, part, values


def other(model: Any) -> Any:
    """The same layers with other parameters."""
    with plugrad.no_grad():
        for seed, parameter in enumerate(model.parameters()):
            parameter.copy_(values(50 + seed, *parameter.shape))
    return model


@pytest.mark.parametrize("assign", [False, True])
def test_whole_tensors_are_cut_as_they_are_loaded(assign: bool) -> None:
    expected = other(mlp())

    def program(net: Any) -> Any:
        sharded(net)
        net(part(batch(0)[0]))
        net.load_state_dict(copy.deepcopy(expected.state_dict()), assign=assign)
        assert net[2].weight.placements == (Shard(0),)
        return [*wholes(net), net(batch(0)[0]).detach().numpy()]

    for found in on_ranks(3, mlp(), program):
        agree(found, [*numbers(expected.parameters()), expected(batch(0)[0]).detach().numpy()])


@pytest.mark.parametrize("assign", [False, True])
def test_state_dicts_of_sharded_models_fit_each_other(assign: bool) -> None:
    model = mlp()

    def program(net: Any) -> Any:
        copied = other(mlp())
        sharded(net)
        sharded(copied)
        net.unshard()
        state = net.state_dict()
        assert all(tensor.placements == (Shard(0),) for tensor in state.values())
        copied.load_state_dict(state, assign=assign)
        loss_of(copied(part(batch(0)[0])), part(batch(0)[1])).backward()
        return [*wholes(copied), *(whole(p.grad) for p in copied.parameters())]

    one = copy.deepcopy(model)
    loss_of(one(batch(0)[0]), batch(0)[1]).backward()
    expected = [*numbers(one.parameters()), *numbers(p.grad for p in one.parameters())]
    for found in on_ranks(2, model, program):
        agree(found, expected)


@pytest.mark.parametrize(("writers", "readers"), [(4, 3), (1, 4), (3, 2)])
def test_a_checkpoint_is_read_by_another_number_of_ranks(
    tmp_path: Path, writers: int, readers: int
) -> None:
    def write(net: Any) -> Any:
        sharded(net)
        optimizer = train(net, adam, 2)
        checkpoint.save({"model": net, "optimizer": optimizer}, checkpoint_id=tmp_path)
        train_on(net, optimizer)
        return wholes(net)

    def read(net: Any) -> Any:
        sharded(other(net))
        optimizer = train(net, adam, 1)
        checkpoint.load({"model": net, "optimizer": optimizer}, checkpoint_id=tmp_path)
        train_on(net, optimizer)
        return wholes(net)

    expected = on_ranks(writers, mlp(), write)[0]
    for found in on_ranks(readers, mlp(), read):
        agree(found, expected, 1e-10)


def train_on(net: Any, optimizer: Any) -> None:
    for step in (2, 3):
        optimizer.zero_grad()
        x, y = map(part, batch(step))
        loss_of(net(x), y).backward()
        optimizer.step()


def test_checkpoints_of_hybrid_models(tmp_path: Path) -> None:
    def write(net: Any) -> Any:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("r", "s"))
        sharded(net, mesh=mesh)
        checkpoint.save({"model": net}, checkpoint_id=tmp_path)
        return wholes(net)

    expected = on_ranks(4, other(mlp()), write)[0]
    alone = mlp()
    checkpoint.load({"model": alone}, checkpoint_id=tmp_path)
    agree(numbers(alone.parameters()), expected)


def test_a_loaded_checkpoint_counts_in_the_next_forward(tmp_path: Path) -> None:
    expected = other(mlp())
    checkpoint.save({"model": expected}, checkpoint_id=tmp_path)

    def program(net: Any) -> Any:
        fully_shard(net)
        with plugrad.no_grad():
            net(batch(0)[0])
        checkpoint.load({"model": net}, checkpoint_id=tmp_path)
        return net(batch(0)[0]).detach().numpy()

    for found in on_ranks(2, mlp(), program):
        agree([found], [expected(batch(0)[0]).detach().numpy()])


def test_conversions_keep_the_parts() -> None:
    def program(net: Any) -> Any:
        sharded(net)
        net.float()
        assert {p.dtype for p in net.parameters()} == {plugrad.float32}
        assert net[0].weight.to_local().shape == (4, 4)
        net.double()
        net.to("cpu")
        train(net, adam, 2)
        return wholes(net)

    model = mlp().float().double()
    found = on_ranks(2, model, program)[0]
    agree(found, on_ranks(1, model, program_of_one)[0])


def program_of_one(net: Any) -> Any:
    train(net, adam, 2)
    return numbers(net.parameters())


@pytest.mark.parametrize("assign", [False, True])
def test_models_are_cut_before_they_have_memory(assign: bool) -> None:
    expected = other(mlp())

    def program(net: Any) -> Any:
        sharded(net)
        net.to_empty(device="cpu")
        assert net[0].weight.to_local().shape == (4, 4)
        assert not net[0].weight.to_local().is_meta
        net.load_state_dict(copy.deepcopy(expected.state_dict()), assign=assign)
        train(net, adam, 1)
        return wholes(net)

    one = copy.deepcopy(expected)
    train_alone(one, adam, 1)
    for found in on_ranks(2, mlp().to("meta"), program):
        agree(found, numbers(one.parameters()))


def test_offload_policies_are_accepted() -> None:
    def program(net: Any) -> Any:
        fully_shard(net, offload_policy=CPUOffloadPolicy())
        return net(batch(0)[0]).detach().numpy()

    model = mlp()
    agree(on_ranks(2, model, program), [model(batch(0)[0]).detach().numpy()] * 2)


def test_training_goes_on_after_an_error_and_a_reset() -> None:
    class Failing(nn.Module):
        fails = False

        def forward(self, x: Any) -> Any:
            if self.fails:
                raise ArithmeticError("on purpose")
            return x

    model = filled(nn.Sequential(nn.Linear(4, 4), Failing(), nn.Linear(4, 3)))

    def program(net: Any) -> Any:
        sharded(net)
        train(net, adam, 1)
        net[1].fails = True
        with pytest.raises(ArithmeticError, match="on purpose"):
            net(part(batch(0)[0]))
        net[1].fails = False
        net.reset_iter_state()
        with pytest.raises(RuntimeError, match="must be called on the root"):
            net[0].reset_iter_state()
        train(net, adam, 1)
        return wholes(net)

    on_ranks(2, model, program)


# Errors


def refused(error: type[BaseException], match: str, model: Any, **options: Any) -> None:
    def program(net: Any) -> None:
        with pytest.raises(error, match=match):
            fully_shard(net, **options)

    on_ranks(2, model, program)


class Scalar(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(plugrad.tensor(1.0))


def test_scalars_are_refused() -> None:
    refused(ValueError, "Change scale to a 1D tensor", Scalar())


def test_containers_without_forward_are_refused() -> None:
    refused(ValueError, "do not implement forward", nn.ModuleList([nn.Linear(2, 2)]))


def test_several_dtypes_are_refused() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double())
    refused(ValueError, "uniform original parameter dtype", model)


def test_forward_without_memory_is_refused() -> None:
    def program(net: Any) -> None:
        fully_shard(net)
        with pytest.raises(RuntimeError, match="'weight' is on the device meta"):
            net(plugrad.ones(1, 2))

    on_ranks(2, nn.Linear(2, 2, device="meta"), program)


def test_other_sizes_to_reshard_to_are_refused() -> None:
    def program(net: Any) -> None:
        with pytest.raises(ValueError, match="should be a factor of 4, not 3"):
            fully_shard(net, reshard_after_forward=3)
        with pytest.raises(ValueError, match="should be a bool or an int"):
            fully_shard(net, reshard_after_forward="yes")

    on_ranks(4, nn.Linear(2, 2), program)


def test_shards_that_do_not_fit_are_refused() -> None:
    refused(NotImplementedError, "uneven sharding on dim 1", nn.Linear(3, 2, bias=False),
            shard_placement_fn=lambda p: Shard(1))  # fmt: skip
    refused(ValueError, "Shard dim 5 is invalid", nn.Linear(2, 2),
            shard_placement_fn=lambda p: Shard(5))  # fmt: skip
    refused(TypeError, "must give a Shard or None", nn.Linear(2, 2),
            shard_placement_fn=lambda p: Replicate())  # fmt: skip


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(TypeError, match="must be a Module or a list of them, got int"):
        fully_shard(3)
    with pytest.raises(TypeError, match="got a list with str"):
        fully_shard([nn.Linear(2, 2), "x"])


def test_meshes_that_do_not_fit_are_refused() -> None:
    def program(net: Any) -> None:
        with pytest.raises(TypeError, match="mesh must be a DeviceMesh, got int"):
            fully_shard(net, mesh=2)
        with pytest.raises(ValueError, match="expects a 1D or 2D DeviceMesh"):
            fully_shard(net, mesh=init_device_mesh("cpu", (2, 1, 1)))
        with pytest.raises(AssertionError, match="with mesh_dim_names specified"):
            fully_shard(net, mesh=init_device_mesh("cpu", (2, 1)))

    on_ranks(2, nn.Linear(2, 2), program)


def test_a_module_is_sharded_once() -> None:
    def program(net: Any) -> None:
        fully_shard(net)
        with pytest.raises(ValueError, match="applied to this module before"):
            fully_shard(net)

    on_ranks(2, nn.Linear(2, 2), program)


def test_parameters_shared_between_groups_are_refused() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight

    def program(net: Any) -> None:
        fully_shard(net[0])
        with pytest.raises(ValueError, match="'weight' is shared with a parameter already"):
            fully_shard(net[1])

    on_ranks(2, model, program)


def test_forward_of_a_part_before_that_of_the_whole_is_refused() -> None:
    def program(net: Any) -> None:
        sharded(net)
        net[0](batch(0)[0])
        with pytest.raises(RuntimeError, match="forward of '0' ran before"):
            net(batch(0)[0])

    on_ranks(2, mlp(), program)


def test_copies_are_refused() -> None:
    def program(net: Any) -> None:
        fully_shard(net)
        with pytest.raises(AssertionError, match="does not support deepcopy"):
            copy.deepcopy(net)
        with pytest.raises(AssertionError, match="does not support pickling"):
            pickle.dumps(net)

    on_ranks(2, nn.Linear(2, 2), program)


def test_writes_to_gathered_parameters_are_refused() -> None:
    class Writing(nn.Linear):
        def forward(self, x: Any) -> Any:
            with plugrad.no_grad():
                self.weight.mul_(0.5)
            return super().forward(x)

    def program(net: Any) -> None:
        fully_shard(net)
        with pytest.raises(RuntimeError, match="wrote to the gathered parameter 'weight'"):
            net(plugrad.ones(1, 2))

    on_ranks(2, Writing(2, 2), program)


def test_writes_between_forward_and_backward_are_refused() -> None:
    def program(net: Any) -> None:
        sharded(net)
        loss = net(batch(0)[0]).sum()
        with plugrad.no_grad():
            net[2].weight.mul_(0.5)
        with pytest.raises(RuntimeError, match="was written to between forward and backward"):
            loss.backward()
        net.reset_iter_state()

    on_ranks(2, mlp(), program)


def test_writes_to_other_saved_tensors_are_refused() -> None:
    def program(net: Any) -> None:
        sharded(net)
        x = batch(0)[0] * 1.0
        loss = net(x).sum()
        x.mul_(2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
        net.reset_iter_state()

    on_ranks(2, mlp(), program)


def test_parameters_that_were_replaced_are_named() -> None:
    def program(net: Any) -> None:
        fully_shard(net)
        net[0].weight = nn.Parameter(plugrad.ones(8, 4).double())
        with pytest.raises(RuntimeError, match=r"parameter '0.weight' must be a DTensor"):
            net(batch(0)[0])

    on_ranks(2, mlp(), program)


def test_settings_check_their_arguments() -> None:
    def program(net: Any) -> None:
        sharded(net)
        with pytest.raises(ValueError, match="Expects FSDPModule but got"):
            net.set_modules_to_forward_prefetch([nn.Linear(2, 2)])
        with pytest.raises(ValueError, match="should be a bool"):
            net.set_reshard_after_forward(2)
        with pytest.raises(ValueError, match="does not have a method lacking"):
            register_fsdp_forward_method(net, "lacking")
        register_fsdp_forward_method(nn.Linear(2, 2), "lacking")

    on_ranks(2, mlp(), program)
