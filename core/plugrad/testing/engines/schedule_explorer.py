"""Schedule explorer: runs a program of several threads under a scheduler of its own, many times.

What a program of several threads does depends on the order in which the operating system runs them;
an error that needs a rare order is hardly ever seen, and cannot be repeated. Here a `Strategy`
chooses the order, and the order is recorded:

* A `Scheduler` stands in for Python's `threading` where the program gets its locks and threads
  from (the engine takes any `Primitives`). Its threads are real ones, but all except one are
  parked, each at a gate of its own.
* Before a lock is acquired, after it was released, when a thread starts, ends or has to wait, the
  strategy decides which thread continues. Between these points a thread runs alone.
* The answers, one small number for each point at which there was a choice, are the *schedule*. The
  same schedule makes the same program do the same again.
* If no thread can continue and some have not ended, that is a deadlock: the error names what each
  thread waits for, and gives the schedule.

    def program(scheduler):                   # runs as the thread "main"
        lock = scheduler.lock()
        ...
        scheduler.start_thread("other", work).join()
        assert ...

    explore(program, RandomWalk(seed=0), 1000)

With `lines_of`, every line of some modules is a point, too, which reveals data without a lock; but
compiled modules have no lines.

`RandomWalk` and `PriorityChanges` choose at random, from a seed; `DepthFirst` goes through all
schedules with few preemptions, which for a small program finds whatever few preemptions can cause.

A program must be deterministic except for its schedule. The scheduler does not see other locks: a
thread must not hold one when another thread is chosen to run.
"""

from __future__ import annotations

import _thread
import random
import sys
import traceback
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from plugrad.autograd.engine.primitives import Primitives

# Programs that go on for longer than this many points are taken to go round in circles.
MOST_POINTS = 100_000
# For which an uncooperative thread is waited for when a run is given up.
SECONDS_TO_UNWIND = 10.0

Program = Callable[["Scheduler"], object]


class ScheduleError(AssertionError):
    """A schedule under which the program fails.

    Attributes:
        schedule: to be given to `replay`.
    """

    def __init__(self, what: str, schedule: Sequence[int]) -> None:
        super().__init__(f"{what}\nschedule: {list(schedule)}")
        self.schedule = list(schedule)


class DeadlockError(ScheduleError):
    """No thread can go on, though not all have ended."""


class _GivenUp(BaseException):
    """Unwinds the threads of a run that has failed."""


class Strategy:
    """Chooses who goes on."""

    def begin(self) -> bool:
        """A new run begins; False if there is none left to try."""
        return True

    def choose(self, threads: list[int], goes_on: bool) -> int:
        """The position in `threads` (at least two) of the thread that continues.

        Args:
            threads: the numbers of the threads that can continue, in order of their start, but with
                the running one first.
            goes_on: whether the running one is among them; all other choices preempt it.
        """
        raise NotImplementedError


class RandomWalk(Strategy):
    """Continues with a random thread at every point.

    Args:
        seed: of the random numbers.
        preemption: the probability that a thread that could continue has to wait.
    """

    def __init__(self, seed: int, preemption: float = 0.3) -> None:
        self._random = random.Random(seed)
        self._preemption = preemption

    def choose(self, threads: list[int], goes_on: bool) -> int:
        if goes_on and self._random.random() >= self._preemption:
            return 0
        return self._random.randrange(len(threads))


class PriorityChanges(Strategy):
    """Probabilistic concurrency testing: random priorities, and few points at which they change.

    The most urgent thread that can go on does. At each of `changes` random points the running
    thread becomes the least urgent. An error that needs d orderings between threads is found with
    a probability of at least 1 / (n k^(d - 1)) per run, for n threads, k points and d - 1 changes.

    Source: Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic
    Guarantees of Finding Bugs. ASPLOS 2010.
    """

    def __init__(self, seed: int, changes: int = 3) -> None:
        self._random = random.Random(seed)
        self._changes = changes
        self._points = 0
        self._longest = 50
        self._change_at: set[int] = set()
        self._urgency: dict[int, float] = {}

    def begin(self) -> bool:
        self._longest = max(self._longest, self._points)
        self._points = 0
        self._urgency = {}
        self._change_at = {self._random.randrange(self._longest) for _ in range(self._changes)}
        return True

    def choose(self, threads: list[int], goes_on: bool) -> int:
        urgency = self._urgency
        for number in threads:
            if number not in urgency:
                urgency[number] = self._random.random()
        if self._points in self._change_at:
            urgency[threads[0]] = min(urgency.values()) - 1.0
        self._points += 1
        return max(range(len(threads)), key=lambda position: urgency[threads[position]])


class DepthFirst(Strategy):
    """All schedules in which at most `preemptions` threads are stopped that could have gone on."""

    def __init__(self, preemptions: int) -> None:
        self._bound = preemptions
        self._path: list[int] = []
        self._limits: list[int] = []
        self._depth = 0
        self._used = 0
        self._begun = False

    def begin(self) -> bool:
        if self._begun:
            del self._path[self._depth :], self._limits[self._depth :]
            while self._path and self._path[-1] + 1 >= self._limits[-1]:
                self._path.pop()
                self._limits.pop()
            if not self._path:
                return False
            self._path[-1] += 1
        self._begun = True
        self._depth = self._used = 0
        return True

    def choose(self, threads: list[int], goes_on: bool) -> int:
        depth = self._depth
        if depth == len(self._path):
            self._path.append(0)
            may_preempt = not goes_on or self._used < self._bound
            self._limits.append(len(threads) if may_preempt else 1)
        choice = self._path[depth]
        self._depth = depth + 1
        if goes_on and choice > 0:
            self._used += 1
        return choice


class Replay(Strategy):
    """Follows a schedule; after its end, the running thread continues."""

    def __init__(self, schedule: Sequence[int]) -> None:
        self._schedule = list(schedule)
        self._next = 0

    def begin(self) -> bool:
        self._next = 0
        return True

    def choose(self, threads: list[int], goes_on: bool) -> int:
        position = self._next
        self._next = position + 1
        if position >= len(self._schedule):
            return 0
        choice = self._schedule[position]
        if choice >= len(threads):
            raise ValueError(
                f"the schedule does not fit the program: choice {position} is {choice}, of "
                f"{len(threads)} threads"
            )
        return choice


class Thread:
    """A thread under a scheduler; what `Scheduler.start_thread` returns."""

    def __init__(self, scheduler: Scheduler, name: str, number: int) -> None:
        self.name = name
        self.ended = False
        self._scheduler = scheduler
        self._number = number
        self._gate = _thread.allocate_lock()
        self._gate.acquire()
        self._waits_for: _Lock | Thread | None = None
        self._interrupt: BaseException | None = None
        self._ident = 0

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended, whatever the timeout: time does not pass under a scheduler."""
        self._scheduler._wait(lambda: not self.ended, self)

    def is_alive(self) -> bool:
        return not self.ended

    def interrupt(self, error: BaseException) -> None:
        """Raise an error in the thread, where it waits or at its next point, as a signal does."""
        self._interrupt = error
        self._waits_for = None

    def __repr__(self) -> str:
        return f"thread {self.name!r}"


class _Lock:
    def __init__(self, scheduler: Scheduler, number: int) -> None:
        self._scheduler = scheduler
        self._number = number
        self._holder: Thread | None = None
        self._made_at = scheduler._points

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        scheduler = self._scheduler
        if self._made_at != scheduler._points:  # else no other thread has it yet
            scheduler._point()
        if self._holder is not None:
            if not blocking:
                return False
            scheduler._wait(self._is_held, self)
        self._holder = scheduler._running
        return True

    def _is_held(self) -> bool:
        return self._holder is not None

    def release(self) -> None:
        scheduler = self._scheduler
        if self._holder is None:
            if scheduler._given_up:
                return
            raise RuntimeError("release unlocked lock")
        self._holder = None
        scheduler._wake(self)
        scheduler._point()

    def locked(self) -> bool:
        return self._holder is not None

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exc_info: object) -> None:
        self.release()

    def __repr__(self) -> str:
        holder = f" (acquired by {self._holder.name!r})" if self._holder is not None else ""
        return f"lock {self._number}{holder}"


class Scheduler(Primitives):
    """Locks and threads for one run of a program.

    Args:
        lines_of: the files in which every line is a point.
    """

    def __init__(self, strategy: Strategy, lines_of: Sequence[str] = ()) -> None:
        self._strategy = strategy
        self._lines_of = frozenset(lines_of)
        self._threads: list[Thread] = []
        self._locks = 0
        self._points = 0
        self._schedule: list[int] = []
        self._running: Thread | None = None
        self._failure: BaseException | None = None
        self._given_up = False
        self._over = _thread.allocate_lock()
        self._over.acquire()

    # What the program uses.

    def lock(self) -> Any:
        self._locks += 1
        return _Lock(self, self._locks)

    def start_thread(self, name: str, target: Callable[[], object]) -> Thread:
        thread = Thread(self, name, len(self._threads))
        self._threads.append(thread)
        _thread.start_new_thread(self._main, (thread, target))
        if self._running is not None:
            self._point()
        return thread

    @property
    def main(self) -> Thread:
        """The thread that the program itself runs as."""
        return self._threads[0]

    # A run.

    def run(self, program: Program) -> list[int]:
        """Run a program to its end; returns the schedule.

        Raises:
            DeadlockError: it came to a point at which no thread can go on.
            ScheduleError: it, or one of its threads, raised an error, which is the cause.
        """
        main = self.start_thread("main", lambda: program(self))
        self._running = main
        main._gate.release()
        self._over.acquire()
        if self._failure is not None:
            self._give_up()
        return self._outcome()

    def _outcome(self) -> list[int]:
        """The schedule of a run that is over, or its failure."""
        failure = self._failure
        if failure is not None:
            self._failure = None
            if isinstance(failure, ScheduleError):
                raise failure
            what = "".join(traceback.format_exception_only(failure)).strip()
            raise ScheduleError(f"the program fails: {what}", self.schedule) from failure
        return self.schedule

    @property
    def schedule(self) -> list[int]:
        """The choices so far, without final choices that only continue the running thread."""
        schedule = list(self._schedule)
        while schedule and schedule[-1] == 0:
            schedule.pop()
        return schedule

    def _main(self, thread: Thread, target: Callable[[], object]) -> None:
        thread._ident = _thread.get_ident()
        thread._gate.acquire()
        if not self._begin(thread, target):
            self._over.release()
            return
        chosen = self._end(thread)
        if chosen is None:
            self._over.release()
        else:
            self._running = chosen
            chosen._gate.release()

    def _begin(self, thread: Thread, target: Callable[[], object]) -> bool:
        """Run a thread to its end; False if that is the end of the run."""
        try:
            if not self._given_up:
                if self._lines_of:
                    sys.settrace(self._trace_call)
                target()
        except _GivenUp:
            pass
        except BaseException as error:
            if self._failure is None:
                self._failure = error
        sys.settrace(None)
        thread.ended = True
        return not self._given_up and self._failure is None

    def _end(self, thread: Thread) -> Thread | None:
        """The thread that continues after a thread has ended."""
        self._wake(thread)
        return self._choose(None)

    def _trace_call(self, frame: FrameType, event: str, argument: object) -> Any:
        return self._trace_line if frame.f_code.co_filename in self._lines_of else None

    def _trace_line(self, frame: FrameType, event: str, argument: object) -> Any:
        # When a run was given up, threads unwind at locks, and not where they clean up.
        if event == "line" and not self._given_up:
            self._switch(self._current())
        return self._trace_line

    def _choose(self, current: Thread | None) -> Thread | None:
        """The thread that continues; None if no thread can, which is a failure unless all have
        ended."""
        ready = [t for t in self._threads if t._waits_for is None and not t.ended]
        if not ready:
            if current is not None or not all(t.ended for t in self._threads):
                self._failure = self._deadlock()
            return None
        if len(ready) == 1:
            return ready[0]
        goes_on = current is not None and current._waits_for is None
        if goes_on and current is not None and ready[0] is not current:
            ready.remove(current)
            ready.insert(0, current)
        try:
            choice = self._strategy.choose([t._number for t in ready], goes_on)
        except BaseException as error:
            self._failure = error
            return None
        self._schedule.append(choice)
        return ready[choice]

    def _switch(self, current: Thread) -> None:
        """Let the chosen thread continue; return when `current` is chosen."""
        self._points += 1
        if self._points > MOST_POINTS and self._failure is None:
            self._failure = ScheduleError(
                f"the program does not end: {MOST_POINTS} points passed", self.schedule
            )
        chosen = None if self._failure is not None else self._choose(current)
        if chosen is not current:
            self._hand_over(current, chosen)
        if self._given_up:
            raise _GivenUp

    def _hand_over(self, current: Thread, chosen: Thread | None) -> None:
        """Let another thread go on, or end the run; return when `current` is to go on."""
        if chosen is None:
            self._over.release()
        else:
            self._running = chosen
            chosen._gate.release()
        current._gate.acquire()

    def _point(self) -> None:
        """A point at which another thread may go on."""
        current = self._current()
        self._switch(current)
        if current._interrupt is not None:
            self._raise_in(current)

    def _wait(self, condition: Callable[[], bool], what: _Lock | Thread) -> None:
        """Let others go on as long as a condition holds."""
        current = self._current()
        while condition():
            current._waits_for = what
            self._switch(current)
            if current._interrupt is not None:
                self._raise_in(current)

    def _wake(self, what: _Lock | Thread) -> None:
        for thread in self._threads:
            if thread._waits_for is what:
                thread._waits_for = None

    def _current(self) -> Thread:
        if self._given_up:
            raise _GivenUp
        running = self._running
        if running is None or not self._is_running(running):
            raise RuntimeError("a thread that is not under the scheduler's control uses its locks")
        return running

    def _is_running(self, thread: Thread) -> bool:
        return thread._ident == _thread.get_ident()

    def _raise_in(self, thread: Thread) -> None:
        error, thread._interrupt = thread._interrupt, None
        assert error is not None
        raise error

    # Failures.

    def _deadlock(self) -> DeadlockError:
        frames = sys._current_frames()
        lines = ["deadlock: no thread can go on"]
        for thread in self._threads:
            if not thread.ended:
                where = _place(frames.get(thread._ident))
                lines.append(f"  thread {thread.name!r} waits for {thread._waits_for!r}{where}")
        return DeadlockError("\n".join(lines), self.schedule)

    def _give_up(self) -> None:
        """Unwind the threads that have not ended, one after the other."""
        self._given_up = True
        for thread in list(self._threads):
            if not thread.ended:
                self._unwind(thread)

    def _unwind(self, thread: Thread) -> None:
        thread._gate.release()
        self._over.acquire(True, SECONDS_TO_UNWIND)


def _place(frame: FrameType | None) -> str:
    """Where a thread is, outside this module; compiled code has no frames."""
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    if frame is None:
        return ""
    code = frame.f_code
    return f", in {code.co_name} ({code.co_filename}:{frame.f_lineno})"


def explore(
    program: Program, strategy: Strategy, schedules: int, lines_of: Sequence[str] = ()
) -> int:
    """Run a program under up to `schedules` schedules; return how many ran.

    Args:
        lines_of: the files in which every line is a point, unless they are compiled.

    Raises:
        DeadlockError: under one of them no thread could continue.
        ScheduleError: under one of them it raised an error.

    >>> from plugrad.testing.engines.schedule_explorer import DepthFirst, explore
    >>> def program(scheduler):
    ...     lock, total = scheduler.lock(), [0]
    ...     def add():
    ...         with lock:
    ...             before = total[0]
    ...         with lock:
    ...             total[0] = before + 1
    ...     other = scheduler.start_thread("other", add)
    ...     add()
    ...     other.join()
    ...     assert total == [2], total
    >>> explore(program, DepthFirst(preemptions=0), 100)
    1
    >>> explore(program, DepthFirst(preemptions=1), 100)
    Traceback (most recent call last):
        ...
    plugrad.testing.engines.schedule_explorer.ScheduleError: the program fails: AssertionError: [1]
    schedule: [0, 0, 0, 1]
    """
    count = 0
    while count < schedules and strategy.begin():
        Scheduler(strategy, lines_of).run(program)
        count += 1
    return count


def replay(program: Program, schedule: Sequence[int], lines_of: Sequence[str] = ()) -> None:
    """Run a program under the schedule that an error names."""
    explore(program, Replay(schedule), 1, lines_of)
