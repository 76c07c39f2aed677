"""Faults in threaded passes: the caller gets the error, and the next pass is right.

A fault is an exception at a random point of a pass: in a node, a hook, a device's queue, or a
thread that does not start. One case of eight runs on real threads, the others under random
schedules.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

from plugrad.autograd.engine.engine import Engine
from plugrad.autograd.engine.primitives import Primitives
from plugrad.testing.engines.explored import explored_engine, running_on
from plugrad.testing.engines.schedule_explorer import RandomWalk, ScheduleError, Scheduler
from tests.torture.engine.coroutines import Coroutines
from tests.torture.engine.random_passes import RandomPasses
from tests.torture.engine.toy_devices import Points, have_toy_devices
from tests.torture.finding import Finding, counts

NAME = "faults"
FAULTS = 20
"""How many of them a case injects into its passes."""
SECONDS = 20.0
QUEUE = ("push", "record_event", "wait_event", "fork", "join")
PLACES = [("node",), ("hook",), QUEUE, ("thread",), ("node", "hook", *QUEUE)]


class InjectedError(Exception):
    """The fault."""


class InjectedInterrupt(BaseException):
    """A fault that is no Exception, as KeyboardInterrupt is none."""


class Fault:
    """Raises at one of the points that are passed, once."""

    def __init__(self) -> None:
        self.error: type[BaseException] = InjectedError
        self.left = -1
        self.places: tuple[str, ...] = ()
        self.raised = ""

    def arm(self, chance: random.Random) -> None:
        """Raise at a later point, or at none."""
        self.error = chance.choice([InjectedError, InjectedError, InjectedInterrupt])
        self.places = chance.choice(PLACES)
        self.left = chance.randint(0, 2 if self.places == ("thread",) else 8)
        self.raised = ""

    def disarm(self) -> None:
        self.left = -1

    def passed(self, place: str) -> None:
        """A point is passed."""
        if self.left < 0 or place not in self.places:
            return
        self.left -= 1
        if self.left < 0:
            self.raised = place
            raise self.error(place)


class _RealThreads(Primitives):
    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    def start_thread(self, name: str, target: Any) -> Any:
        self.fault.passed("thread")
        return super().start_thread(name, target)


class _Scheduler(Coroutines):
    def __init__(self, fault: Fault, seed: int) -> None:
        super().__init__(RandomWalk(seed))
        self.fault = fault

    def start_thread(self, name: str, target: Callable[[], object]) -> Any:
        if name != "main" and not name.startswith("caller"):
            self.fault.passed("thread")
        return super().start_thread(name, target)


class _Case:
    """Passes; some of them fail."""

    def __init__(self, seed: int) -> None:
        have_toy_devices()
        self.chance = random.Random(seed)
        self.fault = Fault()
        callers = self.chance.choice([1, 1, 2, 3])
        steps = self.chance.randint(2, 8)
        self.passes = RandomPasses(self.chance, callers, steps, lambda _: self.point("node"))
        for x in self.passes.leaves:
            x.register_hook(lambda _: self.point("hook"))
        self.callers = callers
        Points.passed = self.fault.passed

    def point(self, place: str) -> None:
        self.fault.passed(place)

    def try_one(self, run: Callable[[], list[BaseException]]) -> str:
        """A pass with a fault and one without; what is wrong with them."""
        fault, passes = self.fault, self.passes
        fault.arm(self.chance)
        passes.forget()
        errors = run()
        fault.disarm()
        counts["faults"] += 1
        counts[f"raised in {fault.raised}" if fault.raised else "not reached"] += 1
        for error in errors:
            if not isinstance(error, (InjectedError, InjectedInterrupt)):
                return f"a fault in {fault.raised} gives {type(error).__name__}: {error}"
        if fault.raised and not errors:
            return f"the error of a fault in {fault.raised} is lost"
        if errors and not fault.raised:
            return "an error comes from nowhere"
        passes.forget()
        for error in run():
            return f"after a fault in {fault.raised} {type(error).__name__}: {error}"
        try:
            passes.check([1] * self.callers)
        except AssertionError as error:
            return f"after a fault in {fault.raised} gradients are wrong: {error}"
        return ""

    def on_real_threads(self) -> str:
        with running_on(Engine(_RealThreads(self.fault))) as engine:
            for _ in range(FAULTS):
                what = self.try_one(lambda: self._run(_started))
                if what:
                    return what
            engine.stop()
        return ""

    def under_schedules(self) -> str:
        for _ in range(FAULTS):
            found: list[str] = []
            scheduler = _Scheduler(self.fault, self.chance.randrange(1 << 30))

            def program(
                _: Scheduler, scheduler: Scheduler = scheduler, found: list[str] = found
            ) -> None:
                with explored_engine(scheduler):
                    found.append(self.try_one(lambda: self._run(scheduler.start_thread)))

            try:
                scheduler.run(program)
            except ScheduleError as error:
                return f"a fault in {self.fault.raised}: {error}"
            if found[0]:
                return f"{found[0]}\nschedule: {scheduler.schedule}"
        return ""

    def _run(self, start: Callable[[str, Callable[[], object]], Any]) -> list[BaseException]:
        """One pass of each caller, all but the first on threads of their own."""
        errors: list[BaseException] = []

        def work(caller: int) -> None:
            try:
                self.passes.backward(caller)
            except (Exception, InjectedInterrupt) as error:
                errors.append(error)

        others = [start(f"caller {n}", lambda n=n: work(n)) for n in range(1, self.callers)]
        work(0)
        for other in others:
            other.join(SECONDS)
            if other.is_alive():
                errors.append(TimeoutError("a caller does not come back"))
        return errors


def _started(name: str, target: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=target, name=name, daemon=True)
    thread.start()
    return thread


def run_case(seed: int) -> Finding | None:
    case = _Case(seed)
    try:
        what = case.on_real_threads() if seed % 8 == 0 else case.under_schedules()
    finally:
        Points.passed = staticmethod(lambda place: None)
    if not what:
        return None
    return Finding(
        f"faults: {what}",
        "from tests.torture.families.faults import run_case  # from a checkout's root\n"
        f"print(run_case({seed}))\n",
    )
