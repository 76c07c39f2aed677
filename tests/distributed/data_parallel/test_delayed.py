"""Gradients whose average waits for that of another parameter. The oracle is training on one
process."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import plugrad.distributed as dist
from plugrad import nn
from plugrad.nn.parallel import DistributedDataParallel
from tests.distributed.training import (
    agree,
    loss_of,
    mlp,
    numbers,
    part,
    sgd,
    trained_on_one,
    values,
)


def wrapped(model: Any, names: Any, trigger: str, **options: Any) -> Any:
    named = dict(model.named_parameters())
    return DistributedDataParallel(
        model,
        delay_all_reduce_named_params=[(name, named[name]) for name in names],
        param_to_hook_all_reduce=named[trigger],
        **options,
    )


# Gradients arrive from the last layer, "4", to the first, "0", whose bias is last.
@pytest.mark.parametrize(
    "names",
    [
        ["2.weight", "4.bias"],
        ["4.weight"],
        ["4.weight", "4.bias", "2.weight", "2.bias", "0.bias", "0.weight"],
    ],
    ids=["some", "one", "all"],
)
@pytest.mark.parametrize("ranks", [1, 3])
def test_training_is_that_of_one_process(names: list[str], ranks: int) -> None:
    expected = trained_on_one(mlp(), sgd)
    models = [mlp() for _ in range(ranks)]

    def program() -> Any:
        net = wrapped(models[dist.get_rank()], names, "0.bias")
        optimizer = sgd(net.parameters())
        for step in range(4):
            optimizer.zero_grad()
            x, y = part(values(100 + step, 12, 4)), part(values(200 + step, 12, 3))
            loss_of(net(x), y).backward()
            optimizer.step()
        return numbers(net.parameters())

    for found in dist.run_ranks(program, ranks):
        agree(found, expected, 1e-12)


def test_parameters_start_as_those_of_the_first_rank() -> None:
    def program() -> Any:
        model = mlp()
        for parameter in model.parameters():
            parameter.data += dist.get_rank()
        wrapped(model, ["4.weight"], "0.weight")
        return numbers(model.parameters())

    for found in dist.run_ranks(program, 2):
        agree(found, numbers(mlp().parameters()))


def test_without_synchronisation_gradients_are_accumulated() -> None:
    def gradients(make: Any) -> list[Any]:
        models = [mlp() for _ in range(2)]

        def program() -> Any:
            net = make(models[dist.get_rank()])
            x, y = part(values(1, 12, 4)), part(values(2, 12, 3))
            with net.no_sync():
                loss_of(net(x), y).backward()
            loss_of(net(2 * x), y).backward()
            return numbers(parameter.grad for parameter in net.parameters())

        return dist.run_ranks(program, 2)

    expected = gradients(DistributedDataParallel)
    found = gradients(lambda model: wrapped(model, ["2.weight", "4.bias"], "0.weight"))
    for mine, theirs in zip(found, expected, strict=True):
        agree(mine, theirs, 1e-12)


@pytest.mark.parametrize(
    ("names", "trigger", "message"),
    [
        (["0.weight"], "4.weight", "'0.weight', one of delay_all_reduce_named_params, arrived aft"),
        (["0.0.weight"], "1.weight", "param_to_hook_all_reduce did not arrive"),
    ],
)
def test_a_trigger_at_the_wrong_moment_is_named(names: Any, trigger: str, message: str) -> None:
    class First(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.add_module("0", mlp())
            self.add_module("1", nn.Linear(4, 3).double())

        def forward(self, x: Any) -> Any:
            return self._modules["0"](x)

    def program() -> None:
        model = First() if names == ["0.0.weight"] else mlp()
        net = wrapped(model, names, trigger)
        with pytest.raises(RuntimeError, match=message):
            loss_of(net(values(1, 2, 4)), values(2, 2, 3)).backward()

    dist.run_ranks(program, 2)


def test_what_is_not_possible_is_named() -> None:
    def program() -> None:
        model = mlp()
        with pytest.raises(ValueError, match="need to be set at the same time"):
            DistributedDataParallel(model, delay_all_reduce_named_params=[])
        frozen = nn.Parameter(values(1, 2), requires_grad=False)
        with pytest.raises(ValueError, match="must be a parameter that requires grad"):
            DistributedDataParallel(
                model, delay_all_reduce_named_params=[], param_to_hook_all_reduce=frozen
            )
        net = wrapped(model, ["4.weight"], "0.weight")
        with pytest.raises(ValueError, match="cannot join"):
            net.join()
        with pytest.raises(RuntimeError, match="cannot be pickled"):
            pickle.dumps(net)

    dist.run_ranks(program, 2)
