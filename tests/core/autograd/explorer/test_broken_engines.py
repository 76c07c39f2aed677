"""What is broken on purpose is found: the explorer would see it in the engine, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import plugrad
from plugrad.dispatch.backends.active import activate_backend, deactivate_backend
from plugrad.plugins import DeviceQueue
from plugrad.testing.engines.explored import explored_engine
from plugrad.testing.engines.schedule_explorer import (
    DeadlockError,
    PriorityChanges,
    Program,
    RandomWalk,
    ScheduleError,
    Scheduler,
    explore,
    replay,
)
from tests.core.autograd.devices.graphs import leaf, then
from tests.core.autograd.devices.toy import ToyBackend


class BrokenBackend(ToyBackend):
    """Devices with queues of a chosen class."""

    def __init__(self, queue: Callable[[], DeviceQueue]) -> None:
        super().__init__("broken")
        self.queue = queue

    def make_queue(self, index: int) -> DeviceQueue:
        return self.queue()


class SilentQueue(DeviceQueue):
    """Takes tasks without telling the thread that may be waiting."""

    def push(self, task: Any) -> None:
        if task.graph_task is None:
            super().push(task)
        else:
            self.ready.push(task)


class ForgetfulQueue(DeviceQueue):
    """Loses the tasks that wake an owner."""

    def push(self, task: Any) -> None:
        if task.node is not None or task.graph_task is None:
            super().push(task)


class LossyQueue(DeviceQueue):
    """Of two tasks that come before the thread takes one, the first is lost."""

    def push(self, task: Any) -> None:
        if len(self.ready) > 0 and task.node is not None:
            self.ready.pop()
        super().push(task)


class TwiceQueue(DeviceQueue):
    """Gives a task out twice if another one has come meanwhile."""

    def pop(self) -> Any:
        task = super().pop()
        if len(self.ready) > 0 and task.node is not None:
            self.ready.push(task)
        return task


@pytest.fixture
def broken(request: pytest.FixtureRequest) -> Iterator[None]:
    activate_backend(BrokenBackend(request.param))
    yield
    deactivate_backend("broken")


def one_pass() -> Program:
    x = leaf("broken:0", 3.0)
    y = (x.to("cpu") * 2 + (x * 4).to("broken:1").to("cpu") + (x * 8).to("cpu")).sum()

    def program(scheduler: Scheduler) -> None:
        x.grad = None
        with explored_engine(scheduler):
            y.backward(retain_graph=True)
        assert x.grad.tolist() == [14.0]

    return program


def nested_pass() -> Program:
    def node(grad: Any) -> None:
        with plugrad.enable_grad():
            (leaf("broken:1", 3.0) * 2).sum().backward()

    def program(scheduler: Scheduler) -> None:
        with explored_engine(scheduler):
            then(leaf("broken:0", 3.0), node).sum().backward()

    return program


@pytest.mark.parametrize(
    ("broken", "make", "kind"),
    [
        (SilentQueue, one_pass, DeadlockError),
        (ForgetfulQueue, nested_pass, DeadlockError),
        (LossyQueue, one_pass, DeadlockError),
        (TwiceQueue, one_pass, ScheduleError),
        (DeviceQueue, one_pass, None),
        (DeviceQueue, nested_pass, None),
    ],
    indirect=["broken"],
)
@pytest.mark.parametrize("strategy", [RandomWalk, PriorityChanges])
@pytest.mark.usefixtures("broken")
def test_a_backend_s_broken_queue_is_found(
    make: Callable[[], Program], kind: type[ScheduleError] | None, strategy: Any
) -> None:
    program = make()
    if kind is None:
        assert explore(program, strategy(seed=0), 200) == 200
        return
    with pytest.raises(kind) as found:
        explore(program, strategy(seed=0), 2000)
    with pytest.raises(kind) as again:
        replay(program, found.value.schedule)
    assert again.value.schedule == found.value.schedule


def test_an_update_that_is_lost_in_a_node_is_found() -> None:
    counts = [0]

    def program(scheduler: Scheduler) -> None:
        lock = scheduler.lock()
        counts[0] = 0

        def node(grad: Any) -> None:
            with lock:
                before = counts[0]
            with lock:
                counts[0] = before + 1

        with explored_engine(scheduler):
            x = leaf("cpu", 3.0)
            one, two = (then(x.to(device), node) for device in ("toy:0", "toy:1"))
            (one.to("cpu") + two.to("cpu")).sum().backward()
        assert counts == [2], f"counted {counts[0]} of 2 nodes"

    with pytest.raises(ScheduleError, match="counted 1 of 2 nodes") as found:
        explore(program, RandomWalk(seed=0), 2000)
    with pytest.raises(ScheduleError, match="counted 1 of 2 nodes"):
        replay(program, found.value.schedule)


def test_the_engine_of_everybody_is_back_after_a_failure() -> None:
    before = plugrad.Tensor._execution_engine
    x = leaf("toy:0", 3.0)

    def program(scheduler: Scheduler) -> None:
        with explored_engine(scheduler):
            then(x, lambda grad: 1 / 0).sum().backward()

    with pytest.raises(ScheduleError, match="ZeroDivisionError"):
        explore(program, RandomWalk(seed=0), 10)
    assert plugrad.Tensor._execution_engine is before
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0]
