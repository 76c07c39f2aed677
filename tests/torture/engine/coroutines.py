"""A scheduler with coroutines of one thread in place of threads: a switch costs less than a
microsecond.

Programs behave the same. Each coroutine has its own `LocalState` and choice of devices, which are
installed when it continues. With the operating system's threads a switch costs ten microseconds,
and a hundred times that on a busy machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from greenlet import getcurrent, greenlet

from plugrad.device import choose_devices, chosen_devices
from plugrad.dispatch import local_state
from plugrad.testing.engines.schedule_explorer import Scheduler, Strategy, Thread


class _Coroutine(Thread):
    """What a thread is, without one."""

    def __init__(self, scheduler: Coroutines, name: str, number: int) -> None:
        super().__init__(scheduler, name, number)
        self.greenlet: Any = None
        self.state = local_state.LocalState()
        self.devices: Any = (None, ())


class Coroutines(Scheduler):
    """Runs one program."""

    def __init__(self, strategy: Strategy) -> None:
        super().__init__(strategy)
        self._base: Any = None

    def start_thread(self, name: str, target: Callable[[], object]) -> Thread:
        thread = _Coroutine(self, name, len(self._threads))
        self._threads.append(thread)
        thread.greenlet = greenlet(lambda *_: self._work(thread, target), self._base)
        if self._running is not None:
            self._point()
        return thread

    def run(self, program: Callable[[Scheduler], object]) -> list[int]:
        self._base = getcurrent()
        outside = local_state.current_state()
        devices = chosen_devices()
        main: Any = self.start_thread("main", lambda: program(self))
        self._running = main
        try:
            self._enter(main)
            if self._failure is not None:
                self._give_up()
        finally:
            local_state.set_current_state(outside)
            choose_devices(devices)
        return self._outcome()

    def _enter(self, thread: Any) -> None:
        """Go on with a coroutine, until it switches to this one or ends."""
        local_state.set_current_state(thread.state)
        choose_devices(thread.devices)
        thread.greenlet.switch()

    def _park(self, current: Any) -> None:
        current.devices = chosen_devices() or (None, ())

    def _work(self, thread: Any, target: Callable[[], object]) -> None:
        if self._begin(thread, target):
            chosen = self._end(thread)
            if chosen is not None:
                self._running = chosen
                # When a coroutine ends, its parent goes on.
                local_state.set_current_state(chosen.state)
                choose_devices(chosen.devices)
                getcurrent().parent = chosen.greenlet

    def _hand_over(self, current: Any, chosen: Any) -> None:
        self._park(current)
        if chosen is None:
            self._base.switch()
        else:
            self._running = chosen
            self._enter(chosen)

    def _is_running(self, thread: Any) -> bool:
        return thread is not None and thread.greenlet is getcurrent()

    def _unwind(self, thread: Any) -> None:
        if thread.greenlet:
            self._enter(thread)
