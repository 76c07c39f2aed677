"""ZeroRedundancyOptimizer updates as the optimizer it divides does on one process."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import plugrad
import plugrad.distributed as dist
from plugrad import nn
from plugrad.distributed.optim import ZeroRedundancyOptimizer
from plugrad.nn.parallel import DistributedDataParallel
from tests.distributed.training import (
    agree,
    loss_of,
    mlp,
    numbers,
    part,
    trained_on_one,
    trained_on_ranks,
    values,
)

CLASSES = [
    (plugrad.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    (plugrad.optim.Adam, {"lr": 0.05, "amsgrad": True}),
    (plugrad.optim.RMSprop, {"lr": 0.01, "centered": True}),
]


@pytest.mark.parametrize(
    ("optimizer", "options"), CLASSES, ids=lambda value: getattr(value, "__name__", "")
)
@pytest.mark.parametrize("as_view", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 7])
def test_steps_are_those_of_the_optimizer(
    optimizer: Any, options: dict[str, Any], as_view: bool, ranks: int
) -> None:
    expected = trained_on_one(mlp(), lambda p: optimizer(p, **options), size=14)
    found = trained_on_ranks(
        mlp(),
        lambda p: ZeroRedundancyOptimizer(
            p, optimizer, parameters_as_bucket_view=as_view, **options
        ),
        ranks,
        size=14,
    )
    for each in found:
        agree(each, expected, 1e-10)


def stepped(parameters: Any, optimizer: Any, steps: int = 2) -> None:
    """Steps with gradients that are the same everywhere."""
    for step in range(steps):
        for seed, parameter in enumerate(parameters):
            parameter.grad = values(10 * step + seed, *parameter.shape)
        optimizer.step()


def weights(*sizes: int) -> list[Any]:
    return [nn.Parameter(values(seed, size)) for seed, size in enumerate(sizes)]


def test_each_rank_keeps_about_the_same_share_of_the_state() -> None:
    def program() -> Any:
        parameters = weights(9, 1, 5, 4, 3, 2)
        optimizer = ZeroRedundancyOptimizer(parameters, plugrad.optim.Adam)
        stepped(parameters, optimizer)
        return [parameter.numel() for parameter in optimizer.optim.state]

    # By size: 9 and 5, then 4, 3, 2, 1, each to the one that has less.
    first, second = dist.run_ranks(program, 2)
    assert sorted(first) == [3, 9]
    assert sorted(second) == [1, 2, 4, 5]


def test_groups_have_options_of_their_own_and_schedules_reach_all_ranks() -> None:
    def train(make: Any) -> list[Any]:
        parameters = weights(3, 4, 5)
        groups = [{"params": parameters[:2], "lr": 0.1}, {"params": parameters[2:]}]
        optimizer = make(groups)
        schedule = plugrad.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        for _ in range(3):
            stepped(parameters, optimizer, 1)
            schedule.step()
        return numbers(parameters)

    expected = train(lambda groups: plugrad.optim.SGD(groups, lr=0.3))

    def program() -> Any:
        return train(lambda groups: ZeroRedundancyOptimizer(groups, plugrad.optim.SGD, lr=0.3))

    for found in dist.run_ranks(program, 2):
        agree(found, expected)


def test_parameters_may_be_added_later() -> None:
    def train(make: Any) -> list[Any]:
        parameters = weights(3, 4, 5, 6)
        optimizer = make(parameters[:2])
        stepped(parameters[:2], optimizer)
        optimizer.add_param_group({"params": parameters[2:], "lr": 0.5})
        stepped(parameters, optimizer)
        return numbers(parameters)

    expected = train(lambda p: plugrad.optim.SGD(p, lr=0.1, momentum=0.9))

    def program() -> Any:
        return [
            train(
                lambda p, as_view=as_view: ZeroRedundancyOptimizer(
                    p, plugrad.optim.SGD, parameters_as_bucket_view=as_view, lr=0.1, momentum=0.9
                )
            )
            for as_view in (False, True)
        ]

    for both in dist.run_ranks(program, 2):
        for found in both:
            agree(found, expected)


def test_the_consolidated_state_is_that_of_the_optimizer_on_one_process() -> None:
    own = weights(3, 4, 5)
    plain = plugrad.optim.Adam(own, lr=0.1)
    stepped(own, plain)
    expected = plain.state_dict()

    def program() -> Any:
        parameters = weights(3, 4, 5)
        optimizer = ZeroRedundancyOptimizer(parameters, plugrad.optim.Adam, lr=0.1)
        stepped(parameters, optimizer)
        optimizer.consolidate_state_dict(to=1)
        if dist.get_rank() == 1:
            return optimizer.state_dict()
        with pytest.raises(RuntimeError, match=r"has not been consolidated.*\(to=0\)"):
            optimizer.state_dict()
        return None

    found = dist.run_ranks(program, 2)[1]
    assert found["param_groups"] == expected["param_groups"]
    assert list(found["state"]) == list(expected["state"])
    for number, state in expected["state"].items():
        assert found["state"][number].keys() == state.keys()
        agree(numbers(found["state"][number].values()), numbers(state.values()))


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_state_of_one_process_goes_on_on_any_number_of_ranks(ranks: int) -> None:
    own = weights(3, 4, 5)
    plain = plugrad.optim.Adam(own, lr=0.1)
    stepped(own, plain)
    saved = copy.deepcopy(plain.state_dict())
    middle = numbers(own)
    stepped(own, plain)
    expected = numbers(own)

    def program() -> Any:
        parameters = [nn.Parameter(plugrad.tensor(each)) for each in middle]
        optimizer = ZeroRedundancyOptimizer(parameters, plugrad.optim.Adam, lr=7.0)
        optimizer.load_state_dict(saved)
        stepped(parameters, optimizer)
        return numbers(parameters), len(optimizer.optim.state), optimizer.param_groups[0]["lr"]

    found = dist.run_ranks(program, ranks)
    for each, _, lr in found:
        agree(each, expected)
        assert lr == 0.1
    assert sum(count for _, count, _ in found) == 3


def test_closures_are_called_on_all_ranks() -> None:
    def program() -> Any:
        (weight,) = parameters = weights(2)
        optimizer = ZeroRedundancyOptimizer(parameters, plugrad.optim.SGD, lr=0.5)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = (weight * weight).sum()
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        return loss.item(), weight.tolist()

    start = values(0, 2)
    # w - 0.5 * 2 w = 0
    assert dist.run_ranks(program, 2) == [((start * start).sum().item(), [0.0, 0.0])] * 2


def test_frozen_parameters_may_be_thawed() -> None:
    def program() -> Any:
        parameters = weights(3, 4)
        parameters[0].requires_grad_(False)
        optimizer = ZeroRedundancyOptimizer(
            parameters, plugrad.optim.SGD, parameters_as_bucket_view=True, lr=1.0
        )
        stepped(parameters[1:], optimizer, 1)
        parameters[0].requires_grad_(True)
        parameters[1].grad = None
        stepped(parameters[:1], optimizer, 1)
        return numbers(parameters)

    expected = [values(0, 3) - values(0, 3), values(1, 4) - values(0, 4)]
    for found in dist.run_ranks(program, 2):
        agree(found, numbers(expected))


def test_it_works_with_a_data_parallel_module_that_keeps_views() -> None:
    expected = trained_on_one(mlp(), lambda p: plugrad.optim.Adam(p, lr=0.05), steps=2, size=12)

    def program() -> Any:
        net = DistributedDataParallel(mlp(), gradient_as_bucket_view=True)
        optimizer = ZeroRedundancyOptimizer(
            net.parameters(), plugrad.optim.Adam, parameters_as_bucket_view=True, lr=0.05
        )
        for step in range(2):
            optimizer.zero_grad()
            loss_of(
                net(part(values(100 + step, 12, 4))), part(values(200 + step, 12, 3))
            ).backward()
            optimizer.step()
        return numbers(net.parameters())

    for found in dist.run_ranks(program, 3):
        agree(found, expected, 1e-10)


@pytest.mark.parametrize(
    ("params", "options", "error", "message"),
    [
        (
            plugrad.ones(2),
            {},
            TypeError,
            "should be an iterable of Tensors or dicts, but got Tensor",
        ),
        ([], {}, ValueError, "got an empty parameter list"),
        ([1], {}, TypeError, "should be an iterable of Tensors or dicts"),
        (
            [plugrad.ones(1)],
            {"overlap_with_ddp": True, "optimizer_class": plugrad.optim.LBFGS},
            ValueError,
            "works without a closure, got LBFGS",
        ),
        ([plugrad.ones(1)], {"optimizer_class": 1}, TypeError, "must be a class of optimizers"),
    ],
)
def test_wrong_arguments_raise(params: Any, options: Any, error: type, message: str) -> None:
    def program() -> None:
        with pytest.raises(error, match=message):
            ZeroRedundancyOptimizer(params, **{"optimizer_class": plugrad.optim.SGD, **options})

    dist.run_ranks(program, 1)


def test_states_of_other_groups_cannot_be_loaded() -> None:
    def program() -> None:
        optimizer = ZeroRedundancyOptimizer(weights(3, 4), plugrad.optim.SGD)
        with pytest.raises(ValueError, match=r"must have \[2\] parameters, got \[1\]"):
            optimizer.load_state_dict(plugrad.optim.SGD(weights(3)).state_dict())
        with pytest.raises(ValueError, match=r"to must be in the interval \[0, 1\], got 2"):
            optimizer.consolidate_state_dict(to=2)

    dist.run_ranks(program, 2)
