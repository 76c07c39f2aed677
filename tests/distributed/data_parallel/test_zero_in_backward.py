"""Steps during backward: after the first two iterations, which update nothing, parameters are those
of ordinary training."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import plugrad
import plugrad.distributed as dist
from plugrad import nn
from plugrad.distributed.algorithms.ddp_comm_hooks import default_hooks
from plugrad.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import (
    hook_with_zero_step,
    hook_with_zero_step_interleaved,
)
from plugrad.distributed.algorithms.join import Join
from plugrad.distributed.optim import ZeroRedundancyOptimizer
from plugrad.nn.parallel import DistributedDataParallel
from tests.distributed.training import agree, filled, loss_of, mlp, numbers, part, values

HOOKS = [hook_with_zero_step, hook_with_zero_step_interleaved]
# Of the six parameters of the model, about two fit into a bucket.
SMALL = 300 / (1 << 20)
IDLE = 2


def batch(step: int) -> tuple[Any, Any]:
    return values(100 + step, 12, 4), values(200 + step, 12, 3)


def trained(
    model: Any, make: Callable[[Any], Any], steps: int, after: Callable[[Any], None] | None = None
) -> tuple[list[Any], Any]:
    """Parameters and optimizer of one process, whose first iterations update nothing."""
    optimizer = make(model.parameters())
    for step in range(IDLE, steps):
        optimizer.zero_grad()
        x, y = batch(step)
        loss_of(model(x), y).backward()
        optimizer.step()
        if after is not None:
            after(optimizer)
    return numbers(model.parameters()), optimizer


def overlapped(
    model: Any,
    make: Callable[[Any], Any],
    wrap: Any,
    *,
    shard: bool = False,
    hook: Any = default_hooks.allreduce_hook,
    **options: Any,
) -> tuple[Any, Any]:
    """A wrapped model and its optimizer, which steps in backward."""
    net = DistributedDataParallel(model, bucket_cap_mb=SMALL, **options)
    zero = make(net.parameters())
    net.register_comm_hook(None, wrap(hook, net, zero, shard))
    return net, zero


def iterate(net: Any, zero: Any, steps: Any) -> None:
    for step in steps:
        zero.zero_grad()
        x, y = batch(step)
        loss_of(net(part(x)), part(y)).backward()


def adam(parameters: Any) -> Any:
    return plugrad.optim.Adam(parameters, lr=0.05, amsgrad=True)


def zero_adam(parameters: Any) -> Any:
    return ZeroRedundancyOptimizer(
        parameters, plugrad.optim.Adam, overlap_with_ddp=True, lr=0.05, amsgrad=True
    )


@pytest.mark.parametrize("wrap", HOOKS)
@pytest.mark.parametrize("shard", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_training_is_that_of_one_process(wrap: Any, shard: bool, ranks: int) -> None:
    expected, _ = trained(mlp(), adam, 6)
    models = [mlp() for _ in range(ranks)]

    def program() -> Any:
        net, zero = overlapped(models[dist.get_rank()], zero_adam, wrap, shard=shard)
        iterate(net, zero, range(6))
        return numbers(net.parameters()), len(zero.optim.state)

    found = dist.run_ranks(program, ranks)
    for parameters, _ in found:
        agree(parameters, expected, 1e-10)
    # Each state is on one rank only.
    assert sum(count for _, count in found) == len(expected)
    assert all(count > 0 for _, count in found)


@pytest.mark.parametrize("wrap", HOOKS)
@pytest.mark.parametrize("options", [{"gradient_as_bucket_view": True}, {"static_graph": True}])
def test_it_works_with_the_options_of_the_module(wrap: Any, options: dict[str, Any]) -> None:
    expected, _ = trained(mlp(), adam, 5)
    models = [mlp() for _ in range(2)]

    def program() -> Any:
        net, zero = overlapped(models[dist.get_rank()], zero_adam, wrap, **options)
        iterate(net, zero, range(5))
        return numbers(net.parameters())

    for found in dist.run_ranks(program, 2):
        agree(found, expected, 1e-10)


@pytest.mark.parametrize(("wrap", "expected"), [(HOOKS[0], "rrrsss"), (HOOKS[1], "rrsrss")])
def test_the_interleaved_hook_steps_before_later_buckets_are_complete(
    wrap: Any, expected: str
) -> None:
    def program() -> str:
        events: list[str] = []

        def hook(state: Any, bucket: Any) -> Any:
            events.append("r")
            return default_hooks.allreduce_hook(state, bucket)

        net, zero = overlapped(mlp(), zero_adam, wrap, hook=hook)
        iterate(net, zero, range(IDLE + 1))
        zero.optim.register_step_post_hook(lambda *_: events.append("s"))
        events.clear()
        iterate(net, zero, [IDLE + 1])
        return "".join(events)

    (found,) = dist.run_ranks(program, 1)
    # The last step of the interleaved hook is after the last bucket too.
    assert found.count("r") == found.count("s") > 1
    assert found == expected


@pytest.mark.parametrize("wrap", HOOKS)
def test_gradients_after_backward_are_the_averages(wrap: Any) -> None:
    model = mlp()
    x, y = batch(0)
    loss_of(model(x), y).backward()
    expected = numbers(parameter.grad for parameter in model.parameters())
    models = [mlp() for _ in range(2)]

    def program() -> Any:
        net, zero = overlapped(
            models[dist.get_rank()],
            # The parameters stay, so that the gradients are comparable.
            lambda p: ZeroRedundancyOptimizer(
                p, plugrad.optim.SGD, overlap_with_ddp=True, lr=0.0, momentum=0.9
            ),
            wrap,
        )
        iterate(net, zero, [0] * 4)
        return numbers(parameter.grad for parameter in net.parameters())

    for found in dist.run_ranks(program, 2):
        agree(found, expected, 1e-12)


@pytest.mark.parametrize("wrap", HOOKS)
def test_parameters_that_no_rank_uses_stay_in_a_static_graph(wrap: Any) -> None:
    class Partly(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return self.used(x)

    def make(parameters: Any) -> Any:
        return ZeroRedundancyOptimizer(
            parameters, plugrad.optim.SGD, overlap_with_ddp=True, lr=0.1, weight_decay=0.1
        )

    expected, _ = trained(
        filled(Partly()), lambda p: plugrad.optim.SGD(p, lr=0.1, weight_decay=0.1), 5
    )
    models = [filled(Partly()) for _ in range(2)]

    def program() -> Any:
        net, zero = overlapped(models[dist.get_rank()], make, wrap, static_graph=True)
        iterate(net, zero, range(5))
        return numbers(net.parameters())

    for found in dist.run_ranks(program, 2):
        agree(found, expected, 1e-12)


@pytest.mark.parametrize("wrap", HOOKS)
@pytest.mark.parametrize(
    "hook",
    [
        default_hooks.bf16_compress_hook,
        default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook),
    ],
)
def test_gradients_may_be_compressed(wrap: Any, hook: Any) -> None:
    def make(parameters: Any) -> Any:
        return ZeroRedundancyOptimizer(parameters, plugrad.optim.SGD, overlap_with_ddp=True, lr=0.1)

    expected, _ = trained(mlp(), lambda p: plugrad.optim.SGD(p, lr=0.1), 5)
    models = [mlp() for _ in range(2)]

    def program() -> Any:
        net, zero = overlapped(models[dist.get_rank()], make, wrap, hook=hook)
        iterate(net, zero, range(5))
        return numbers(net.parameters())

    first, second = dist.run_ranks(program, 2)
    agree(first, second)
    agree(first, expected, 1e-2)


@pytest.mark.parametrize("wrap", HOOKS)
def test_options_of_groups_and_schedules_count(wrap: Any) -> None:
    def groups(parameters: Any) -> Any:
        every = list(parameters)
        return [{"params": every[:3], "lr": 0.3}, {"params": every[3:]}]

    def halve(optimizer: Any) -> None:
        for group in optimizer.param_groups:
            group["lr"] *= 0.5

    expected, _ = trained(mlp(), lambda p: plugrad.optim.SGD(groups(p), lr=0.1), 5, halve)
    models = [mlp() for _ in range(2)]

    def program() -> Any:
        net, zero = overlapped(
            models[dist.get_rank()],
            lambda p: ZeroRedundancyOptimizer(
                groups(p), plugrad.optim.SGD, overlap_with_ddp=True, lr=0.1
            ),
            wrap,
        )
        for step in range(5):
            iterate(net, zero, [step])
            if step >= IDLE:
                halve(zero)
        return numbers(net.parameters())

    for found in dist.run_ranks(program, 2):
        agree(found, expected, 1e-12)


@pytest.mark.parametrize("shard", [False, True])
def test_states_are_saved_and_loaded(shard: bool) -> None:
    middle, optimizer = trained(mlp(), adam, 4)
    saved = copy.deepcopy(optimizer.state_dict())
    expected, _ = trained(mlp(), adam, 6)
    models = [mlp() for _ in range(4)]

    def save() -> Any:
        net, zero = overlapped(models[dist.get_rank()], zero_adam, HOOKS[0], shard=shard)
        with pytest.raises(RuntimeError, match="only after the third backward pass"):
            zero.consolidate_state_dict()
        with pytest.raises(RuntimeError, match="only after the third backward pass"):
            zero.load_state_dict(saved)
        iterate(net, zero, range(4))
        zero.consolidate_state_dict()
        return zero.state_dict() if dist.get_rank() == 0 else None

    state = dist.run_ranks(save, 2)[0]
    assert state["param_groups"] == saved["param_groups"]
    for number, tensors in saved["state"].items():
        agree(numbers(state["state"][number].values()), numbers(tensors.values()), 1e-10)

    def load() -> Any:
        net, zero = overlapped(models[2 + dist.get_rank()], zero_adam, HOOKS[1], shard=shard)
        iterate(net, zero, range(IDLE + 1))
        zero.load_state_dict(state)
        with plugrad.no_grad():
            for parameter, value in zip(net.parameters(), middle, strict=True):
                parameter.copy_(plugrad.tensor(value))
        iterate(net, zero, range(4, 6))
        return numbers(net.parameters())

    for found in dist.run_ranks(load, 2):
        agree(found, expected, 1e-10)


@pytest.mark.parametrize("wrap", HOOKS)
def test_ranks_without_inputs_join(wrap: Any) -> None:
    models = [mlp() for _ in range(2)]

    def program() -> Any:
        net, zero = overlapped(models[dist.get_rank()], zero_adam, wrap)
        with Join([net, zero]):
            for step in range(4 + dist.get_rank()):
                zero.zero_grad()
                x, y = batch(step)
                loss_of(net(part(x)), part(y)).backward()
        return numbers(net.parameters())

    model = mlp()
    optimizer = adam(model.parameters())
    for step in range(IDLE, 5):
        optimizer.zero_grad()
        x, y = batch(step)
        if step < 4:
            loss_of(model(x), y).backward()
        else:
            (loss_of(model(x.chunk(2)[1]), y.chunk(2)[1]) / 2).backward()
        optimizer.step()
    for found in dist.run_ranks(program, 2):
        agree(found, numbers(model.parameters()), 1e-10)


def test_a_step_by_the_program_does_nothing_and_warns() -> None:
    def program() -> Any:
        (weight,) = weights = [nn.Parameter(plugrad.ones(2))]
        zero = ZeroRedundancyOptimizer(weights, plugrad.optim.SGD, overlap_with_ddp=True, lr=1.0)
        weight.grad = plugrad.ones(2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert zero.step() is None
        with pytest.raises(RuntimeError, match="takes all parameter groups when it is made"):
            zero.add_param_group({"params": [nn.Parameter(plugrad.ones(2))]})
        return weight.tolist(), [str(each.message) for each in caught]

    ((weight, messages),) = dist.run_ranks(program, 1)
    assert weight == [1.0, 1.0]
    assert [message for message in messages if "should not be included" in message]


def test_misuse_is_named() -> None:
    def program() -> None:
        hook = default_hooks.allreduce_hook
        net = DistributedDataParallel(nn.Linear(2, 1))
        plain = ZeroRedundancyOptimizer(net.parameters(), plugrad.optim.SGD)
        with pytest.raises(ValueError, match="`overlap_with_ddp=True` to use this hook properly"):
            hook_with_zero_step(hook, net, plain)

        def overlapping(parameters: Any, **options: Any) -> Any:
            return ZeroRedundancyOptimizer(
                parameters, plugrad.optim.SGD, overlap_with_ddp=True, **options
            )

        unused = DistributedDataParallel(nn.Linear(2, 1), find_unused_parameters=True)
        with pytest.raises(ValueError, match="without find_unused_parameters=True"):
            hook_with_zero_step_interleaved(hook, unused, overlapping(unused.parameters()))
        own = dist.new_group([dist.get_rank()], use_local_synchronization=True)
        with pytest.raises(ValueError, match=r"the same process group, got ranks \[\d\] and"):
            hook_with_zero_step(hook, net, overlapping(net.parameters(), process_group=own))
        more = [*net.parameters(), nn.Parameter(plugrad.ones(1))]
        net.register_comm_hook(None, hook_with_zero_step(hook, net, overlapping(more)))
        for _ in range(IDLE):
            net(plugrad.ones(1, 2)).sum().backward()
        with pytest.raises(RuntimeError, match="1 of its parameters are not among those"):
            net(plugrad.ones(1, 2)).sum().backward()

    dist.run_ranks(program, 2)
