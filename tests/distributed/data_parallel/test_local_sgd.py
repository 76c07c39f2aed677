"""Post-local SGD: groups that train on their own, and are averaged once in some steps. The oracle
is the same arithmetic on one process."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import plugrad
import plugrad.distributed as dist
from plugrad import nn
from plugrad.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (
    PostLocalSGDState,
    post_localSGD_hook,
)
from plugrad.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from plugrad.distributed.optim import PostLocalSGDOptimizer
from plugrad.nn.parallel import DistributedDataParallel
from tests.distributed.training import agree, loss_of, mlp, numbers, part, sgd, values

RANKS, WARM, PERIOD, STEPS = 4, 2, 3, 7
SMALL = 300 / (1 << 20)


def batch(step: int) -> tuple[Any, Any]:
    return values(100 + step, 12, 4), values(200 + step, 12, 3)


def by_hand(groups: int) -> list[Any]:
    """Parameters of groups with the same number of ranks, each with its part of the batch."""
    models = [mlp() for _ in range(groups)]
    optimizers = [sgd(model.parameters()) for model in models]
    for step in range(STEPS):
        x, y = batch(step)
        for number, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
            optimizer.zero_grad()
            own = slice(None) if step < WARM else slice(12 // groups * number, None)
            end = None if step < WARM else 12 // groups
            loss_of(model(x[own][:end]), y[own][:end]).backward()
            optimizer.step()
        if step >= WARM and (step - WARM) % PERIOD == 0:
            with plugrad.no_grad():
                for alike in zip(*(model.parameters() for model in models), strict=True):
                    mean = sum(alike[1:], alike[0]) / groups
                    for parameter in alike:
                        parameter.copy_(mean)
    return [numbers(model.parameters()) for model in models]


@pytest.mark.parametrize(("size", "own"), [(2, False), (1, False), (1, True)])
def test_training_is_that_of_groups(size: int, own: bool) -> None:
    expected = by_hand(RANKS // size)
    models = [mlp() for _ in range(RANKS)]

    def program() -> Any:
        net = DistributedDataParallel(models[dist.get_rank()], bucket_cap_mb=SMALL)
        subgroup = None if own else dist.new_subgroups(size)[0]
        state = PostLocalSGDState(None, subgroup, WARM, post_local_gradient_allreduce=not own)
        net.register_comm_hook(state, post_localSGD_hook)
        optimizer = PostLocalSGDOptimizer(
            sgd(net.parameters()), PeriodicModelAverager(PERIOD, WARM)
        )
        for step in range(STEPS):
            optimizer.zero_grad()
            x, y = batch(step)
            loss_of(net(part(x)), part(y)).backward()
            optimizer.step()
        return numbers(net.parameters())

    for rank, found in enumerate(dist.run_ranks(program, RANKS)):
        agree(found, expected[rank // size], 1e-10)


def test_by_default_the_ranks_of_a_machine_are_a_group() -> None:
    def program() -> Any:
        state = PostLocalSGDState(None, None, 0)
        bucket = dist.GradBucket(0, plugrad.ones(2) * dist.get_rank(), [], True)
        return post_localSGD_hook(state, bucket).wait().tolist()

    assert dist.run_ranks(program, 2) == [[0.5, 0.5]] * 2


def test_the_steps_of_the_averager_are_saved() -> None:
    def program() -> None:
        weight = nn.Parameter(values(1, 2))
        optimizer = PostLocalSGDOptimizer(sgd([weight]), PeriodicModelAverager(2))
        for _ in range(3):
            weight.grad = values(2, 2)
            optimizer.step()
        saved = copy.deepcopy(optimizer.state_dict())
        other = PostLocalSGDOptimizer(sgd([nn.Parameter(values(1, 2))]), PeriodicModelAverager(2))
        other.load_state_dict(saved)
        assert other.averager.step == saved["step"] == 3
        (state,) = other.state.values()
        agree(numbers(state.values()), numbers(optimizer.state[weight].values()))
        del saved["step"]
        with pytest.warns(UserWarning, match="does not contain a step counter"):
            other.load_state_dict(saved)
        assert other.averager.step == 0

    dist.run_ranks(program, 1)


def test_schedules_and_groups_are_those_of_the_optimizer() -> None:
    def program() -> Any:
        weight, added = (nn.Parameter(values(seed, 2)) for seed in range(2))
        optimizer = PostLocalSGDOptimizer(sgd([weight]), PeriodicModelAverager(2))
        schedule = plugrad.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        optimizer.add_param_group({"params": [added], "lr": 7.0})
        weight.grad = values(2, 2)
        optimizer.step()
        schedule.step()
        return optimizer.optim.param_groups[0]["lr"], len(optimizer.param_groups)

    assert dist.run_ranks(program, 1) == [(0.05, 2)]


def test_wrong_arguments_raise() -> None:
    def program() -> None:
        with pytest.raises(ValueError, match="``period`` must be a positive value, got 0"):
            PeriodicModelAverager(0)
        with pytest.raises(ValueError, match="``warmup_steps`` must be a non-negative number"):
            PeriodicModelAverager(2, -1)
        with pytest.warns(UserWarning, match="When period is 1"):
            PeriodicModelAverager(1)

    dist.run_ranks(program, 1)
