"""The threaded engine under random schedules: no deadlock, no lost error, no wrong gradient."""

from __future__ import annotations

import random
from typing import Any

from plugrad.testing.engines.explored import explored_engine
from plugrad.testing.engines.schedule_explorer import (
    PriorityChanges,
    Program,
    RandomWalk,
    ScheduleError,
    Scheduler,
    Strategy,
)
from tests.core.autograd.explorer.programs import PROGRAMS, together
from tests.torture.engine.coroutines import Coroutines
from tests.torture.engine.random_passes import RandomPasses
from tests.torture.engine.toy_devices import have_toy_devices
from tests.torture.finding import Finding, counts

NAME = "schedules"

SCHEDULES = 50
"""How many of them a case tries on its program."""
RANDOM_PROGRAMS = 0.6
"""Which part of the cases have a program of their own."""


def run_case(seed: int) -> Finding | None:
    have_toy_devices()
    chance = random.Random(seed)
    name, program = _program(chance)
    try:
        strategy = _strategy(chance)
        for _ in range(SCHEDULES):
            strategy.begin()
            Coroutines(strategy).run(program)
            counts["schedules"] += 1
    except ScheduleError as error:
        return Finding(
            f"schedules: {name}: {error}",
            "from tests.torture.families.schedules import replay_case  # from a checkout's root\n"
            f"replay_case({seed}, {error.schedule})\n",
        )
    return None


def replay_case(seed: int, schedule: list[int]) -> None:
    """Run a case's program under one schedule, which raises its error again."""
    from plugrad.testing.engines.schedule_explorer import replay

    have_toy_devices()
    replay(_program(random.Random(seed))[1], schedule)


def _program(chance: random.Random) -> tuple[str, Program]:
    if chance.random() >= RANDOM_PROGRAMS:
        name = chance.choice(sorted(PROGRAMS))
        return name, PROGRAMS[name]()
    callers = chance.choice([1, 1, 2, 2, 3])
    passes = RandomPasses(chance, callers, chance.randint(2, 6), _nothing)

    def run(scheduler: Scheduler) -> None:
        passes.forget()
        with explored_engine(scheduler):
            works = [lambda caller=caller: passes.backward(caller) for caller in range(callers)]
            together(*works)(scheduler)
        passes.check([1] * callers)

    return "random passes", run


def _nothing(grad: Any) -> None:
    return None


def _strategy(chance: random.Random) -> Strategy:
    seed = chance.randrange(1 << 30)
    kind = chance.randrange(4)
    if kind < 2:
        return RandomWalk(seed, preemption=(0.3, 0.03)[kind])
    return PriorityChanges(seed, changes=(3, 6)[kind - 2])
