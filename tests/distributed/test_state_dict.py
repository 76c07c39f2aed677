"""State dicts by plain names: what one way to train writes, the others read. Training that goes on
after a change of the way equals training that did not change."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

import plugrad
from plugrad import distributed as dist
from plugrad import nn, optim
from plugrad.distributed import checkpoint
from plugrad.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from plugrad.distributed.fsdp import fully_shard
from plugrad.distributed.tensor import DTensor
from plugrad.nn.parallel import DistributedDataParallel
from tests.distributed.training import values


def numbers(tensor: Any) -> Any:
    return tensor.detach().numpy().copy()


NAMES = ["0.bias", "0.weight", "2.bias", "2.weight"]


def net() -> Any:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    with plugrad.no_grad():
        for index, parameter in enumerate(model.parameters()):
            parameter.copy_(values(index, *parameter.shape))
    return model


def adam(model: Any, lr: float = 0.1) -> Any:
    return optim.Adam(model.parameters(), lr=lr)


def step(model: Any, optimizer: Any) -> None:
    optimizer.zero_grad()
    model(values(7, 2, 3)).square().sum().backward()
    optimizer.step()


def sharded() -> Any:
    model = net()
    fully_shard(model[0])
    return fully_shard(model)


WAYS: dict[str, Any] = {
    "alone": net,
    "data parallel": lambda: DistributedDataParallel(net()),
    "part data parallel": lambda: nn.Sequential(DistributedDataParallel(net()[0]), *net()[1:]),
    "fully sharded": sharded,
}


def trained(steps: int) -> tuple[Any, Any]:
    model = net()
    optimizer = adam(model)
    for _ in range(steps):
        step(model, optimizer)
    return model, optimizer


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("after", WAYS)
@pytest.mark.parametrize("before", WAYS)
def test_what_one_way_writes_another_reads(before: str, after: str, flat: bool) -> None:
    whole = StateDictOptions(full_state_dict=True, flatten_optimizer_state_dict=flat)

    def program() -> Any:
        first = WAYS[before]()
        optimizer = adam(first)
        step(first, optimizer)
        weights, states = get_state_dict(first, optimizer, options=whole)
        assert sorted(weights) == NAMES
        second = WAYS[after]()
        optimizer = adam(second, lr=5.0)
        found = set_state_dict(
            second,
            optimizer,
            model_state_dict=copy.deepcopy(weights),
            optim_state_dict=copy.deepcopy(states),
            options=whole,
        )
        assert not found.missing_keys
        assert not found.unexpected_keys
        step(second, optimizer)
        return {k: numbers(v) for k, v in get_model_state_dict(second, options=whole).items()}

    model, _ = trained(2)
    wanted = {name: numbers(value) for name, value in model.state_dict().items()}
    for found in dist.run_ranks(program, 2):
        for name, value in wanted.items():
            assert abs(found[name] - value).max() < 1e-12


def test_a_checkpoint_of_shards_is_read_by_one_process(tmp_path: Path) -> None:
    def program() -> None:
        model = sharded()
        optimizer = adam(model)
        step(model, optimizer)
        weights, states = get_state_dict(model, optimizer)
        assert isinstance(weights["0.weight"], DTensor)
        checkpoint.save({"model": weights, "optim": states}, checkpoint_id=tmp_path)

    dist.run_ranks(program, 2)
    model = net()
    optimizer = adam(model, lr=5.0)
    weights, states = get_state_dict(model, optimizer)
    state = {"model": weights, "optim": states}
    checkpoint.load(state, storage_reader=checkpoint.FileSystemReader(tmp_path))
    set_state_dict(
        model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"]
    )
    wanted, _ = trained(1)
    assert optimizer.param_groups[0]["lr"] == 0.1
    for name, value in wanted.state_dict().items():
        assert abs(numbers(model.state_dict()[name]) - numbers(value)).max() < 1e-12


def test_rank_0_alone_has_the_whole_and_gives_it_to_all() -> None:
    def program() -> Any:
        model = sharded()
        optimizer = adam(model)
        step(model, optimizer)
        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        weights, states = get_state_dict(model, optimizer, options=options)
        if dist.get_rank() != 0:
            assert weights == {}
            assert states == {}
        other = sharded()
        fresh = adam(other)
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        set_state_dict(
            other, fresh, model_state_dict=weights, optim_state_dict=states, options=options
        )
        step(other, fresh)
        return [numbers(parameter.full_tensor()) for parameter in other.parameters()]

    wanted, _ = trained(2)
    for found in dist.run_ranks(program, 2):
        for one, parameter in zip(found, wanted.parameters(), strict=True):
            assert abs(one - numbers(parameter)).max() < 1e-12


def test_an_optimizer_that_made_no_step_gets_a_state_without_one() -> None:
    model = net()
    optimizer = adam(model)
    before = [numbers(parameter) for parameter in model.parameters()]
    states = get_optimizer_state_dict(model, optimizer)
    assert sorted(states["state"]) == NAMES
    assert all((numbers(p) == b).all() for p, b in zip(model.parameters(), before, strict=True))
    assert all(parameter.grad is None for parameter in model.parameters())
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_parts_of_a_model() -> None:
    model, optimizer = trained(1)
    part = get_model_state_dict(model, submodules=[model[2]])
    assert sorted(part) == ["2.bias", "2.weight"]
    bare = StateDictOptions(keep_submodule_prefixes=False)
    assert sorted(get_model_state_dict(model, submodules=[model[2]], options=bare)) == [
        "bias",
        "weight",
    ]
    states = get_optimizer_state_dict(model, optimizer, submodules=[model[2]])
    assert sorted(states["state"]) == ["2.bias", "2.weight"]
    model[0].requires_grad_(False)
    thawed = get_model_state_dict(model, options=StateDictOptions(ignore_frozen_params=True))
    assert sorted(thawed) == ["2.bias", "2.weight"]
    found = set_model_state_dict(model, part, options=StateDictOptions(strict=False))
    assert sorted(found.missing_keys) == ["0.bias", "0.weight"]


def test_several_optimizers() -> None:
    model = net()
    several = [optim.SGD(model[0].parameters(), lr=0.5, momentum=0.9), adam(model[2], 0.25)]
    for optimizer in several:
        step(model, optimizer)
    states = get_optimizer_state_dict(model, several)
    assert [group["params"] for group in states["param_groups"]] == [
        ["0.weight", "0.bias"],
        ["2.weight", "2.bias"],
    ]
    other = net()
    fresh = [optim.SGD(other[0].parameters(), lr=1.0, momentum=0.9), adam(other[2], 1.0)]
    set_optimizer_state_dict(other, fresh, states)
    assert [one.param_groups[0]["lr"] for one in fresh] == [0.5, 0.25]
    momentum = fresh[0].state[other[0].weight]["momentum_buffer"]
    assert (numbers(momentum) == numbers(states["state"]["0.weight"]["momentum_buffer"])).all()


def test_what_is_wrong_is_told() -> None:
    model, optimizer = trained(1)
    with pytest.raises(ValueError, match="full_state_dict must be True"):
        StateDictOptions(broadcast_from_rank0=True)
    with pytest.raises(ValueError, match="submodules: all must be"):
        get_model_state_dict(model, submodules=[nn.Linear(1, 1)])
    with pytest.raises(ValueError, match="not one of the model"):
        get_optimizer_state_dict(net(), optimizer)
    states = get_optimizer_state_dict(model, optimizer)
    states["param_groups"][0]["params"].remove("2.bias")
    with pytest.raises(ValueError, match=r"no parameter group has '2\.bias'"):
        set_optimizer_state_dict(model, optimizer, states)
    fresh = net()
    step(fresh, optim.SGD(fresh.parameters(), lr=0.1))
    with pytest.raises(RuntimeError, match="call zero_grad"):
        get_optimizer_state_dict(fresh, adam(fresh))


def test_folders(tmp_path: Path) -> None:
    state = {"x": plugrad.ones(2)}
    writer = checkpoint.FileSystemWriter(tmp_path, overwrite=False)
    checkpoint.save(state, storage_writer=writer, no_dist=True)
    with pytest.raises(checkpoint.CheckpointError, match="overwrite is False"):
        checkpoint.save(state, storage_writer=writer)
    with pytest.raises(ValueError, match="must be a folder, got None"):
        checkpoint.save(state)
    with pytest.raises(ValueError, match="must mean one folder"):
        checkpoint.load(state, checkpoint_id=tmp_path / "other", storage_reader=writer)
    with pytest.raises(TypeError, match="must be a FileSystemReader"):
        checkpoint.load(state, storage_reader=tmp_path)  # type: ignore[arg-type]
    assert isinstance(nn.Linear(1, 1), checkpoint.Stateful)
