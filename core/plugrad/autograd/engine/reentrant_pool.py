"""ReentrantPool: threads that run nested passes once they are too deep for one thread's stack."""

from __future__ import annotations

from typing import Any, Final, final

from plugrad.autograd.engine.graph_task import GraphTask
from plugrad.autograd.engine.primitives import Bell, Primitives

# So many threads of the pool wait for the next pass that nests deeply; others end.
MOST_IDLE: Final = 8


@final
class Handover:
    """A pass that a thread of the pool drives while its caller waits."""

    def __init__(self, task: GraphTask, primitives: Primitives) -> None:
        self.task = task
        self.done: bool = False
        self._taken: bool = False
        self._end = Bell(primitives)
        self._end.prepare()

    def take(self) -> bool:
        """True for the first caller: it drives the pass, or gives up waiting for another thread to
        do so."""
        with self.task.lock:
            first = not self._taken
            self._taken = True
        return first

    def wait(self) -> None:
        self._end.wait()

    def finish(self) -> None:
        self.done = True
        self._end.ring()


@final
class _Idle:
    """A waiting thread of the pool; the thread that takes it off the list gives it work or ends
    it."""

    def __init__(self, primitives: Primitives) -> None:
        self.handover: Handover | None = None
        self.called = Bell(primitives)


@final
class ReentrantPool:
    """Starts a thread when none is idle, since all of them may have to wait for each other."""

    def __init__(self, primitives: Primitives, drive: Any) -> None:
        self._primitives = primitives
        self._drive: Any = drive
        self._lock: Any = primitives.lock()
        self._idle: list[_Idle] = []
        self._started = 0
        self._stopping = False

    def submit(self, handover: Handover) -> None:
        """Have a handover driven; at once, by whatever thread."""
        with self._lock:
            if self._idle:
                idle = self._idle.pop()
                idle.handover = handover
                idle.called.ring()
                return
            self._started += 1
        name = f"plugrad-reentrant-{self._started}"
        self._primitives.start_thread(name, _PoolMain(self, handover).run)

    def stop(self) -> None:
        """Let idle threads end."""
        with self._lock:
            self._stopping = True
            for idle in self._idle:
                idle.called.ring()
            self._idle.clear()

    def run(self, first: Handover) -> None:
        """The main loop of a thread: one handover after the other."""
        handover: Handover | None = first
        while handover is not None:
            self._drive(handover)
            handover = self._next()

    def _next(self) -> Handover | None:
        """The next handover, when there is one; None if the thread is to end."""
        idle = _Idle(self._primitives)
        with self._lock:
            if self._stopping or len(self._idle) >= MOST_IDLE:
                return None
            idle.called.prepare()
            self._idle.append(idle)
        idle.called.wait()
        return idle.handover


@final
class _PoolMain:
    """What a thread of the pool runs."""

    def __init__(self, pool: ReentrantPool, first: Handover) -> None:
        self._pool = pool
        self._first = first

    def run(self) -> None:
        self._pool.run(self._first)
