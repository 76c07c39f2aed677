"""fully_shard: training on ranks gives what training on one process gives."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest

import plugrad
import plugrad.distributed as dist
from plugrad import nn
from plugrad.distributed.device_mesh import init_device_mesh
from plugrad.distributed.fsdp import (
    fully_shard,
)
from plugrad.distributed.tensor import Replicate, Shard
from plugrad.utils.checkpoint import checkpoint
from tests.distributed.sharded_training import (
    alone,
    batch,
    on_ranks,
    sharded,
    train,
    whole,
    wholes,
)
from tests.distributed.training import (
    adam,
    agree,
    filled,
    loss_of,
    mlp,
    numbers,
    part,
    sgd,
)


def expect_same_training(
    model: Any, make: Any, ranks: int, wrap: Any = sharded, **options: Any
) -> None:
    def program(net: Any) -> list[Any]:
        wrap(net)
        train(net, make, **options)
        return wholes(net)

    expected = alone(model, make, **options)
    for found in on_ranks(ranks, model, program):
        agree(found, expected)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("make", [sgd, adam])
def test_training_equals_that_of_one_process(make: Any, ranks: int) -> None:
    # 8 and 3 rows on 3 and 4 ranks: uneven parts, and empty ones.
    expect_same_training(mlp(), make, ranks)


def test_one_group_for_the_whole_model() -> None:
    expect_same_training(mlp(), adam, 3, fully_shard)


@pytest.mark.parametrize("reshard", [True, False])
def test_reshard_after_forward_does_not_change_training(reshard: bool) -> None:
    expect_same_training(mlp(), sgd, 2, lambda net: sharded(net, reshard_after_forward=reshard))


@pytest.mark.parametrize("grid", [(4,), (3, 4)])
def test_training_with_a_smaller_world_for_backward(grid: tuple[int, ...]) -> None:
    def wrap(net: Any) -> None:
        names = ("replicate", "shard")[-len(grid) :]
        mesh = init_device_mesh("cpu", grid, mesh_dim_names=names)
        sharded(net, mesh=mesh, reshard_after_forward=2)

    expect_same_training(mlp(), adam, math.prod(grid), wrap)


def test_forwards_that_share_what_neighbours_keep() -> None:
    def loss(net: Any, x: Any, y: Any) -> Any:
        return loss_of(net(x) + net(2 * x), y)

    def wrap(net: Any) -> None:
        sharded(net, reshard_after_forward=2)

    expect_same_training(mlp(), adam, 4, wrap, loss=loss)


def test_shards_along_other_dimensions() -> None:
    def wrap(net: Any) -> None:
        def placement(parameter: Any) -> Shard | None:
            return Shard(1) if parameter.ndim == 2 and parameter.shape[1] % 2 == 0 else None

        sharded(net, shard_placement_fn=placement)
        assert net[0].weight.placements == (Shard(1),)
        assert net[0].bias.placements == (Shard(0),)

    expect_same_training(mlp(), adam, 2, wrap)


def test_parameters_are_dtensors_of_parts() -> None:
    def program(net: Any) -> Any:
        sharded(net)
        optimizer = train(net, adam, 1)
        states = [optimizer.state[p]["exp_avg"].to_local().shape[0] for p in net.parameters()]
        grads = [p.grad.to_local().shape[0] for p in net.parameters()]
        return [p.to_local().shape[0] for p in net.parameters()], grads, states

    found = on_ranks(4, mlp(), program)
    # Rows of 8, 8, 8, 8, 3 and 3: the fourth rank has none of three.
    assert [rank[0] for rank in found] == [[2, 2, 2, 2, 1, 1]] * 3 + [[2, 2, 2, 2, 0, 0]]
    assert all(rank[0] == rank[1] == rank[2] for rank in found)


class Tied(nn.Module):
    """Two layers with one weight, and one that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.last = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        x = plugrad.tanh(self.second(plugrad.tanh(self.first(x))))
        return self.last(x) + self.last(plugrad.tanh(x))


def test_shared_parameters_of_one_group() -> None:
    def wrap(net: Any) -> None:
        fully_shard(net)
        assert net.first.weight is net.second.weight

    expect_same_training(filled(Tied()), sgd, 2, wrap)


def test_modules_that_are_called_several_times() -> None:
    def wrap(net: Any) -> None:
        fully_shard(net.last)
        fully_shard(net)

    expect_same_training(filled(Tied()), sgd, 2, wrap)


def test_several_modules_in_one_group() -> None:
    def wrap(net: Any) -> None:
        fully_shard([net.first, net.second])
        assert net.first.weight is net.second.weight
        fully_shard(net)

    expect_same_training(filled(Tied()), adam, 2, wrap)


@pytest.mark.parametrize("names", [["weight"], ["bias"]])
def test_frozen_parameters_stay_as_they_are(names: list[str]) -> None:
    model = mlp()
    for name, parameter in model[2].named_parameters():
        parameter.requires_grad_(name not in names)
    expect_same_training(model, adam, 2)


def test_a_frozen_layer_below_and_above() -> None:
    model = mlp()
    for layer in (model[0], model[4]):
        layer.requires_grad_(False)
    expect_same_training(model, sgd, 2)


def test_nested_groups() -> None:
    inner = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))
    model = filled(nn.Sequential(nn.Linear(4, 8), inner, nn.Tanh(), nn.Linear(8, 3)))

    def wrap(net: Any) -> None:
        fully_shard(net[1][2])
        fully_shard(net[1])
        fully_shard(net)

    expect_same_training(model, adam, 2, wrap)


def test_several_forwards_before_backward() -> None:
    def loss(net: Any, x: Any, y: Any) -> Any:
        first, second = net(x), net(0.5 * x)
        return loss_of(first, y) + loss_of(second, y)

    expect_same_training(mlp(), sgd, 3, loss=loss)


def test_backward_of_two_forwards_one_after_the_other() -> None:
    def loss(net: Any, x: Any, y: Any) -> Any:
        first, second = loss_of(net(x), y), loss_of(net(0.5 * x), y)
        second.backward()
        return first

    expect_same_training(mlp(), sgd, 2, loss=loss)


def test_evaluation_in_between() -> None:
    def loss(net: Any, x: Any, y: Any) -> Any:
        net.eval()
        with plugrad.no_grad():
            before = net(x)
        with plugrad.inference_mode():
            assert plugrad.equal(net(x), before)
        net.train()
        return loss_of(net(x), y)

    expect_same_training(mlp(), sgd, 2, loss=loss)


def test_a_kept_root_is_gathered_anew_after_a_step_of_the_optimizer() -> None:
    def program(net: Any) -> None:
        fully_shard(net)
        x, y = map(part, batch(0))
        loss_of(net(x), y).backward()
        with plugrad.no_grad():
            net(x)
            for parameter in net.parameters():
                parameter.mul_(0.0)
            assert net(x).abs().max() == 0

    on_ranks(2, mlp(), program)


@pytest.mark.parametrize("use_reentrant", [True, False])
@pytest.mark.parametrize("inside", [True, False])
def test_activation_checkpoints(inside: bool, use_reentrant: bool) -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

        def inner(self, x: Any) -> Any:
            return self.down(plugrad.tanh(self.up(x)))

        def forward(self, x: Any) -> Any:
            if inside:
                return checkpoint(self.inner, x, use_reentrant=use_reentrant)
            return self.inner(x)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head, self.one, self.two = nn.Linear(4, 4), Block(), Block()
            self.tail = nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            x = self.head(x)
            for block in (self.one, self.two):
                x = block(x) if inside else checkpoint(block, x, use_reentrant=use_reentrant)
            return self.tail(x)

    def wrap(net: Any) -> None:
        fully_shard(net.one)
        fully_shard(net.two)
        fully_shard(net)

    expect_same_training(filled(Net()), sgd, 2, wrap)


def test_gradient_accumulation_without_communication() -> None:
    model = mlp()

    def program(net: Any) -> list[Any]:
        sharded(net)
        for step in range(3):
            net.set_requires_gradient_sync(step == 2)
            x, y = map(part, batch(step))
            loss_of(net(x), y).backward()
            assert all((p.grad is None) == (step < 2) for p in net.parameters())
        return [whole(p.grad) for p in net.parameters()]

    one = copy.deepcopy(model)
    for step in range(3):
        loss_of(one(batch(step)[0]), batch(step)[1]).backward()
    for found in on_ranks(2, model, program):
        agree(found, numbers(p.grad for p in one.parameters()))


def test_gradients_add_up_over_passes() -> None:
    model = mlp()

    def program(net: Any) -> list[Any]:
        sharded(net)
        net.set_reshard_after_backward(False)
        net.set_is_last_backward(False)
        for step in range(3):
            net.set_is_last_backward(step == 2)
            x, y = map(part, batch(step))
            loss_of(net(x), y).backward()
        return [whole(p.grad) for p in net.parameters()]

    one = copy.deepcopy(model)
    for step in range(3):
        loss_of(one(batch(step)[0]), batch(step)[1]).backward()
    for found in on_ranks(2, model, program):
        agree(found, numbers(p.grad for p in one.parameters()))


def test_hybrid_sharding() -> None:
    def wrap(net: Any) -> None:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
        sharded(net, mesh=mesh)
        assert net[0].weight.placements == (Replicate(), Shard(0))
        assert net[0].weight.to_local().shape == (4, 4)

    expect_same_training(mlp(), adam, 4, wrap)


def test_hybrid_accumulation_with_reduce_scatter_only() -> None:
    model = mlp()

    def program(net: Any) -> list[Any]:
        sharded(net, mesh=init_device_mesh("cpu", (2, 2), mesh_dim_names=("r", "s")))
        for step in range(2):
            net.set_requires_all_reduce(step == 1)
            x, y = map(part, batch(step))
            loss_of(net(x), y).backward()
            assert all((p.grad is None) == (step == 0) for p in net.parameters())
        return [whole(p.grad) for p in net.parameters()]

    one = copy.deepcopy(model)
    for step in range(2):
        loss_of(one(batch(step)[0]), batch(step)[1]).backward()
    for found in on_ranks(4, model, program):
        agree(found, numbers(p.grad for p in one.parameters()))


def test_gradient_divide_factor() -> None:
    model = mlp()

    def program(net: Any) -> list[Any]:
        fully_shard(net)
        net.set_gradient_divide_factor(1.0)
        x, y = map(part, batch(0))
        loss_of(net(x), y).backward()
        return [whole(p.grad) for p in net.parameters()]

    one = copy.deepcopy(model)
    (2 * loss_of(one(batch(0)[0]), batch(0)[1])).backward()
    for found in on_ranks(2, model, program):
        agree(found, numbers(p.grad for p in one.parameters()))


def test_gradients_of_nothing_are_zeros() -> None:
    def program(net: Any) -> Any:
        fully_shard(net)
        net(part(batch(0)[0]))[:, :0].sum().backward()
        return [whole(p.grad).any() for p in net.parameters()]

    assert on_ranks(2, mlp(), program)[0] == [False] * 6


class Branches(nn.Module):
    """Each rank uses another layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 3), nn.Linear(4, 3)])

    def forward(self, x: Any, which: int) -> Any:
        return self.layers[which](x)


def test_parameters_that_only_some_ranks_use() -> None:
    model = filled(Branches())

    def program(net: Any) -> list[Any]:
        fully_shard(net)
        net.set_reduce_scatter_unused_params(True)
        x, y = map(part, batch(0))
        loss_of(net(x, dist.get_rank()), y).backward()
        return [whole(p.grad) for p in net.parameters()]

    one = copy.deepcopy(model)
    x, y = batch(0)
    losses = [loss_of(one(x.chunk(2)[i], i), y.chunk(2)[i]) for i in range(2)]
    (0.5 * sum(losses)).backward()
    for found in on_ranks(2, model, program):
        agree(found, numbers(p.grad for p in one.parameters()))


def test_unused_parameters_of_all_ranks_get_no_gradient() -> None:
    def program(net: Any) -> Any:
        fully_shard(net)
        net(part(batch(0)[0]), 0).sum().backward()
        return [p.grad is None for p in net.parameters()]

    assert on_ranks(2, filled(Branches()), program)[0] == [False, False, True, True]
