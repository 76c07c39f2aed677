"""Coroutines replace threads: a schedule has the same effect on a program."""

from __future__ import annotations

import pytest

import plugrad
from plugrad.testing.engines.schedule_explorer import (
    DeadlockError,
    DepthFirst,
    Program,
    ScheduleError,
    Scheduler,
    explore,
)
from tests.torture.engine.coroutines import Coroutines


def _lost_update(scheduler: Scheduler) -> None:
    lock, total = scheduler.lock(), [0]

    def add() -> None:
        with lock:
            before = total[0]
        with lock:
            total[0] = before + 1

    other = scheduler.start_thread("other", add)
    add()
    other.join()
    assert total == [2], total


def _deadlock(scheduler: Scheduler) -> None:
    one, two = scheduler.lock(), scheduler.lock()

    def take() -> None:
        with two, one:
            pass

    other = scheduler.start_thread("other", take)
    with one, two:
        pass
    other.join()


def _own_state(scheduler: Scheduler) -> None:
    lock = scheduler.lock()

    def work() -> None:
        with plugrad.no_grad():
            with lock:
                pass
            assert not plugrad.is_grad_enabled()

    other = scheduler.start_thread("other", work)
    with lock:
        assert plugrad.is_grad_enabled()
    other.join()
    assert plugrad.is_grad_enabled()


def _failure(program: Program, coroutines: bool) -> tuple[type[ScheduleError], list[int]] | None:
    """How and under which schedule a program fails first, with one preemption."""
    strategy = DepthFirst(preemptions=1)
    try:
        if coroutines:
            while strategy.begin():
                Coroutines(strategy).run(program)
        else:
            explore(program, strategy, 1000)
    except ScheduleError as error:
        return type(error), error.schedule
    return None


@pytest.mark.parametrize(
    ("program", "kind"),
    [(_lost_update, ScheduleError), (_deadlock, DeadlockError), (_own_state, None)],
)
def test_coroutines_fail_where_threads_do(program: Program, kind: type | None) -> None:
    found = _failure(program, coroutines=True)
    assert found == _failure(program, coroutines=False)
    assert (found and found[0]) is kind
