"""Ranks with different numbers of inputs: `Join`, against runs worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

import plugrad
import plugrad.distributed as dist
from plugrad import nn
from plugrad.distributed.algorithms.join import Join, Joinable, JoinHook
from plugrad.distributed.optim import ZeroRedundancyOptimizer
from plugrad.nn.parallel import DistributedDataParallel
from tests.distributed.training import agree, filled, loss_of, mlp, numbers, values

TINY = 300 / (1 << 20)
COUNTS = (4, 1, 2)


def inputs(rank: int, step: int) -> tuple[Any, Any]:
    return values(10 * rank + step, 2, 4), values(500 + 10 * rank + step, 2, 3)


def by_hand(counts: tuple[int, ...], by_all: bool) -> list[Any]:
    """One process goes through the steps: the sum of the gradients of the ranks that have inputs,
    divided by the number of all ranks or of those."""
    model = mlp()
    optimizer = plugrad.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(max(counts)):
        active = [rank for rank, count in enumerate(counts) if step < count]
        optimizer.zero_grad()
        total = sum(loss_of(model(x), y) for x, y in (inputs(rank, step) for rank in active))
        (total / (len(counts) if by_all else len(active))).backward()
        optimizer.step()
    return numbers(model.parameters())


@pytest.mark.parametrize("by_all", [True, False])
@pytest.mark.parametrize("options", [{}, {"find_unused_parameters": True}, {"static_graph": True}])
@pytest.mark.parametrize("counts", [COUNTS, (0, 3), (3, 0)])
def test_uneven_inputs_train_as_worked_out_by_hand(
    counts: tuple[int, ...], options: dict[str, Any], by_all: bool
) -> None:
    expected = by_hand(counts, by_all)
    models = [mlp() for _ in counts]

    def program() -> Any:
        net = DistributedDataParallel(models[dist.get_rank()], bucket_cap_mb=TINY, **options)
        optimizer = plugrad.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        with net.join(divide_by_initial_world_size=by_all):
            for step in range(counts[dist.get_rank()]):
                x, y = inputs(dist.get_rank(), step)
                optimizer.zero_grad()
                loss_of(net(x), y).backward()
                optimizer.step()
        return numbers(net.parameters())

    for found in dist.run_ranks(program, len(counts)):
        agree(found, expected)


def test_a_model_and_its_divided_optimizer_join_together() -> None:
    expected = by_hand(COUNTS, True)
    models = [mlp() for _ in COUNTS]

    def program() -> Any:
        net = DistributedDataParallel(models[dist.get_rank()])
        optimizer = ZeroRedundancyOptimizer(
            net.parameters(), plugrad.optim.SGD, lr=0.1, momentum=0.9
        )
        with Join([net, optimizer]):
            for step in range(COUNTS[dist.get_rank()]):
                x, y = inputs(dist.get_rank(), step)
                optimizer.zero_grad()
                loss_of(net(x), y).backward()
                optimizer.step()
        return numbers(net.parameters())

    for found in dist.run_ranks(program, len(COUNTS)):
        agree(found, expected)


def test_buffers_come_from_a_rank_that_has_inputs() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 3)
            self.register_buffer("calls", plugrad.zeros(1))

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return self.layer(x)

    def program() -> Any:
        net = DistributedDataParallel(filled(Counting()))
        with net.join():
            for step in range((1, 3)[dist.get_rank()]):
                net(inputs(0, step)[0]).sum().backward()
        return net.module.calls.item()

    assert dist.run_ranks(program, 2) == [3.0, 3.0]


def test_no_sync_works_in_a_join() -> None:
    def program() -> Any:
        net = DistributedDataParallel(nn.Linear(1, 1, bias=False))
        x = plugrad.tensor([[dist.get_rank() + 1.0]])
        with net.join():
            for _ in range((1, 2)[dist.get_rank()]):
                with net.no_sync():
                    net(x).sum().backward()
                net(x).sum().backward()
        return net.module.weight.grad.item()

    # Rank 1: (2 + 1 + 2 + 1) / 2 after its first inputs, then 2 + 2 more, halved.
    assert dist.run_ranks(program, 2)[1] == (3.0 + 2 + 2) / 2


def test_the_first_rank_without_inputs_stops_all_where_that_is_asked_for() -> None:
    def program() -> Any:
        net = DistributedDataParallel(nn.Linear(1, 1))
        done = 0
        try:
            with net.join(throw_on_early_termination=True):
                for _ in range((2, 4)[dist.get_rank()]):
                    net(plugrad.ones(1, 1)).sum().backward()
                    done += 1
        except RuntimeError as error:
            return done, str(error)
        return done, ""

    assert dist.run_ranks(program, 2) == [
        (2, "Rank 0 exhausted all inputs."),
        (2, "Detected at least one rank that exhausted inputs. Throwing across all ranks."),
    ]


class Counter(Joinable):
    """Adds ones over the ranks that have inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0.0
        self.last: list[bool] = []

    def __call__(self) -> None:
        Join.notify_join_context(self)
        self.total += self.add(1.0)

    def add(self, value: float) -> float:
        one = plugrad.tensor([value])
        dist.all_reduce(one)
        return one.item()

    def join_hook(self, **kwargs: Any) -> JoinHook:
        counter = self

        class Hook(JoinHook):
            def main_hook(self) -> None:
                counter.total += counter.add(kwargs["weight"])

            def post_hook(self, is_last_joiner: bool) -> None:
                counter.last.append(is_last_joiner)

        return Hook()

    @property
    def join_device(self) -> Any:
        return plugrad.device("cpu")

    @property
    def join_process_group(self) -> Any:
        return dist.group.WORLD


def test_objects_of_others_can_join() -> None:
    def program() -> Any:
        counter = Counter()
        with Join([counter], weight=0.25):
            for _ in range(dist.get_rank() + 1):
                counter()
        return counter.total, counter.last

    # 3; then 2 and a quarter; then 1 and two quarters.
    total = 3 + 2.25 + 1.5
    assert dist.run_ranks(program, 3) == [(total, [False]), (total, [False]), (total, [True])]


def test_a_join_that_is_off_or_over_does_nothing() -> None:
    def program() -> Any:
        net = DistributedDataParallel(nn.Linear(1, 1, bias=False))
        with net.join(enable=False):
            net(plugrad.ones(1, 1)).sum().backward()
        with net.join():
            pass
        assert not net._join_config.enable
        return net.module.weight.grad.item()

    assert dist.run_ranks(program, 2) == [1.0, 1.0]
    assert dist.run_ranks(program, 1) == [1.0]


def test_after_a_join_averages_are_over_all_ranks() -> None:
    def program() -> Any:
        net = DistributedDataParallel(nn.Linear(1, 1, bias=False))
        x = plugrad.tensor([[dist.get_rank() + 1.0]])
        with net.join(divide_by_initial_world_size=False):
            for _ in range((1, 2)[dist.get_rank()]):
                net(x).sum().backward()
        net.zero_grad()
        net(x).sum().backward()
        return net.module.weight.grad.item()

    assert dist.run_ranks(program, 2) == [1.5, 1.5]


def test_joins_need_joinables_of_one_group() -> None:
    def program() -> None:
        with pytest.raises(ValueError, match="requires at least one joinable"):
            Join([])
        both = [
            DistributedDataParallel(nn.Linear(1, 1)),
            DistributedDataParallel(nn.Linear(1, 1), process_group=dist.new_group([0, 1])),
        ]
        with pytest.raises(ValueError, match="multiple process groups"):
            Join(both)

    dist.run_ranks(program, 2)
