"""The schedule explorer: what it runs, what it finds, and that a schedule can be run again."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from plugrad.autograd.engine.primitives import Bell
from plugrad.testing.engines.schedule_explorer import (
    DeadlockError,
    DepthFirst,
    PriorityChanges,
    RandomWalk,
    ScheduleError,
    Scheduler,
    Strategy,
    explore,
    replay,
)

STRATEGIES: list[Callable[[], Strategy]] = [
    lambda: RandomWalk(seed=0),
    lambda: PriorityChanges(seed=0),
    lambda: DepthFirst(preemptions=2),
]


def writers(log: list[list[str]], threads: int, times: int) -> Any:
    """Threads that write their names under a lock; `log` gets what each run wrote."""

    def program(scheduler: Scheduler) -> None:
        lock = scheduler.lock()
        written: list[str] = []

        def write(name: str) -> None:
            for _ in range(times):
                with lock:
                    written.append(name)

        started = [
            scheduler.start_thread(name, lambda name=name: write(name))  # type: ignore[misc]
            for name in "abcdef"[: threads - 1]
        ]
        write("main")
        for thread in started:
            thread.join()
        log.append(written)

    return program


def lost_update(scheduler: Scheduler) -> None:
    """Two threads that count; each looks at the number once and writes it back later."""
    lock, total = scheduler.lock(), [0]

    def add() -> None:
        with lock:
            before = total[0]
        with lock:
            total[0] = before + 1

    other = scheduler.start_thread("other", add)
    add()
    other.join()
    assert total == [2], f"{total[0]} instead of 2"


def crossed_locks(scheduler: Scheduler) -> None:
    """Two threads that take two locks in different orders."""
    first, second = scheduler.lock(), scheduler.lock()

    def other() -> None:
        with second, first:
            pass

    thread = scheduler.start_thread("other", other)
    with first, second:
        pass
    thread.join()


def waits(ring_too_early: bool) -> Any:
    """A thread waits for a bell, prepared under the lock or too late."""

    def program(scheduler: Scheduler) -> None:
        lock, bell, items = scheduler.lock(), Bell(scheduler), []

        def put() -> None:
            with lock:
                items.append(1)
                bell.ring()

        scheduler.start_thread("other", put)
        while True:
            with lock:
                if items:
                    return
                if not ring_too_early:
                    bell.prepare()
            if ring_too_early:
                bell.prepare()
            bell.wait()

    return program


@pytest.mark.parametrize(("threads", "times"), [(2, 2), pytest.param(3, 1, marks=pytest.mark.long)])
def test_depth_first_goes_through_all_orders(threads: int, times: int) -> None:
    log: list[list[str]] = []
    explore(writers(log, threads, times), DepthFirst(preemptions=100), 1_000_000)
    names = ["main", "a", "b"][:threads]
    expected = set(itertools.permutations(names * times))
    assert {tuple(written) for written in log} == expected


def test_depth_first_never_repeats_a_schedule() -> None:
    strategy = DepthFirst(preemptions=2)
    program = writers([], 2, 2)
    seen: set[tuple[int, ...]] = set()
    count = 0
    while strategy.begin():
        seen.add(tuple(Scheduler(strategy).run(program)))
        count += 1
    assert len(seen) == count


def test_without_preemptions_threads_run_until_they_wait() -> None:
    log: list[list[str]] = []
    explore(writers(log, 3, 2), DepthFirst(preemptions=0), 1000)
    assert {tuple(written) for written in log} == {
        ("main", "main", "a", "a", "b", "b"),
        ("main", "main", "b", "b", "a", "a"),
    }


@pytest.mark.parametrize("make", STRATEGIES[:2])
def test_random_strategies_come_to_all_orders(make: Callable[[], Strategy]) -> None:
    log: list[list[str]] = []
    explore(writers(log, 2, 2), make(), 300)
    assert len({tuple(written) for written in log}) == 6


@pytest.mark.parametrize("make", STRATEGIES)
def test_a_seed_gives_the_same_schedules_again(make: Callable[[], Strategy]) -> None:
    def schedules() -> list[list[int]]:
        strategy = make()
        found = []
        for _ in range(30):
            assert strategy.begin()
            found.append(Scheduler(strategy).run(writers([], 3, 3)))
        return found

    first = schedules()
    assert schedules() == first
    assert len({tuple(schedule) for schedule in first}) > 10


@pytest.mark.parametrize("make", STRATEGIES)
@pytest.mark.parametrize(
    ("program", "kind", "words"),
    [
        (lost_update, ScheduleError, "AssertionError: 1 instead of 2"),
        (crossed_locks, DeadlockError, "thread 'other' waits for lock 1 .acquired by 'main'."),
        (waits(ring_too_early=True), DeadlockError, "thread 'main' waits for lock"),
    ],
)
def test_what_is_wrong_is_found_and_can_be_seen_again(
    make: Callable[[], Strategy], program: Any, kind: type[ScheduleError], words: str
) -> None:
    with pytest.raises(kind, match=words) as found:
        explore(program, make(), 2000)
    schedule = found.value.schedule
    assert f"schedule: {schedule}" in str(found.value)
    for _ in range(3):
        with pytest.raises(kind, match=words) as again:
            replay(program, schedule)
        assert again.value.schedule == schedule


@pytest.mark.parametrize("make", STRATEGIES)
def test_what_is_right_is_not_found_wrong(make: Callable[[], Strategy]) -> None:
    assert explore(waits(ring_too_early=False), make(), 500) > 5


def test_the_program_s_own_error_is_the_cause() -> None:
    def program(scheduler: Scheduler) -> None:
        raise KeyError("mine")

    with pytest.raises(ScheduleError, match=r"KeyError: 'mine'") as found:
        explore(program, RandomWalk(0), 1)
    assert isinstance(found.value.__cause__, KeyError)


def test_an_error_in_another_thread_is_found() -> None:
    def fail() -> None:
        raise KeyError("theirs")

    def program(scheduler: Scheduler) -> None:
        lock = scheduler.lock()
        lock.acquire()
        scheduler.start_thread("other", fail)
        lock.acquire()  # never comes back

    with pytest.raises(ScheduleError, match=r"KeyError: 'theirs'"):
        explore(program, RandomWalk(0), 1)


def test_a_thread_that_is_left_behind_is_a_deadlock() -> None:
    def program(scheduler: Scheduler) -> None:
        lock = scheduler.lock()
        lock.acquire()
        scheduler.start_thread("forgotten", lock.acquire)

    with pytest.raises(DeadlockError, match="thread 'forgotten' waits for lock 1"):
        explore(program, RandomWalk(0), 1)


def test_a_deadlock_says_where_threads_wait() -> None:
    with pytest.raises(DeadlockError, match=r"in crossed_locks \(.*test_schedule_explorer.py:\d+"):
        explore(crossed_locks, RandomWalk(0), 1000)


def test_no_thread_is_left_after_a_failure() -> None:
    before = threading.active_count()
    for seed in range(20):
        with pytest.raises(DeadlockError):
            explore(crossed_locks, RandomWalk(seed), 1000)
    assert threading.active_count() == before


def test_a_program_that_goes_round_in_circles() -> None:
    def program(scheduler: Scheduler) -> None:
        lock = scheduler.lock()
        while True:
            with lock:
                pass

    with pytest.raises(ScheduleError, match="the program does not end"):
        explore(program, RandomWalk(0), 1)


def test_a_schedule_of_another_program() -> None:
    with pytest.raises(ScheduleError, match="the schedule does not fit the program: choice 0 is 7"):
        replay(lost_update, [7])


def test_locks_are_for_threads_of_the_scheduler() -> None:
    scheduler = Scheduler(RandomWalk(0))
    locks: list[Any] = []

    def program(scheduler: Scheduler) -> None:
        locks.append(scheduler.lock())
        with locks[0]:
            pass

    scheduler.run(program)
    with pytest.raises(RuntimeError, match="a thread that is not under the scheduler's control"):
        locks[0].acquire()


def test_locks_behave_as_python_s() -> None:
    def program(scheduler: Scheduler) -> None:
        lock = scheduler.lock()
        assert not lock.locked()
        assert lock.acquire()
        assert lock.locked()
        assert not lock.acquire(False)
        scheduler.start_thread("another may release it", lock.release).join()
        assert lock.acquire(blocking=True, timeout=1.0)
        lock.release()
        with pytest.raises(RuntimeError, match="release unlocked lock"):
            lock.release()

    explore(program, RandomWalk(0), 10)


def test_threads_can_be_asked_whether_they_live() -> None:
    def program(scheduler: Scheduler) -> None:
        lock = scheduler.lock()
        with lock:
            thread = scheduler.start_thread("other", lambda: lock.acquire() and lock.release())
            assert thread.is_alive()
        thread.join(timeout=0.0)
        assert not thread.is_alive()

    explore(program, RandomWalk(0), 10)


@pytest.mark.parametrize("make", STRATEGIES)
def test_an_interrupt_ends_a_wait(make: Callable[[], Strategy]) -> None:
    def program(scheduler: Scheduler) -> None:
        lock = scheduler.lock()
        lock.acquire()
        error = KeyboardInterrupt()
        interrupted = False
        try:
            scheduler.start_thread("other", lambda: scheduler.main.interrupt(error))
            lock.acquire()
        except KeyboardInterrupt as caught:
            interrupted = caught is error
        assert interrupted

    assert explore(program, make(), 50) > 1


def test_lines_can_be_points() -> None:
    def program(scheduler: Scheduler) -> None:
        total = [0]

        def add() -> None:
            before = total[0]
            total[0] = before + 1

        other = scheduler.start_thread("other", add)
        add()
        other.join()
        assert total == [2]

    assert explore(program, DepthFirst(preemptions=3), 1000) < 10
    with pytest.raises(ScheduleError) as found:
        explore(program, RandomWalk(0), 1000, lines_of=[__file__])
    with pytest.raises(ScheduleError):
        replay(program, found.value.schedule, lines_of=[__file__])


def test_priorities_change_seldom() -> None:
    strategy = PriorityChanges(seed=0, changes=0)
    log: list[list[str]] = []
    explore(writers(log, 3, 4), strategy, 200)
    # The most urgent thread runs to its end, once it has been started.
    for written in log:
        changes = sum(a != b for a, b in itertools.pairwise(written))
        assert changes <= 4
