"""The engine under explored schedules: no deadlock, no lost task or error, no wrong gradient."""

from __future__ import annotations

import importlib

import pytest

from plugrad.testing.engines.schedule_explorer import (
    DepthFirst,
    PriorityChanges,
    RandomWalk,
    Strategy,
    explore,
)
from tests.core.autograd.explorer.programs import PROGRAMS

FEW = 10
MANY = 25  # per program and strategy; `make torture` goes on from there

# Modules of the engine with data that several threads share.
LINES_OF = [
    str(importlib.import_module(f"plugrad.autograd.engine.{name}").__file__)
    for name in (
        "callbacks",
        "device_thread",
        "engine",
        "graph_task",
        "input_buffer",
        "primitives",
        "ready_queue",
        "reentrant_pool",
    )
]


def strategies(seed: int) -> dict[str, Strategy]:
    return {
        "walk": RandomWalk(seed),
        "slow walk": RandomWalk(seed, preemption=0.03),
        "priorities": PriorityChanges(seed),
        "more priorities": PriorityChanges(seed, changes=6),
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_few_schedules(name: str) -> None:
    program = PROGRAMS[name]()
    for strategy in strategies(seed=1).values():
        assert explore(program, strategy, FEW) == FEW


@pytest.mark.slow
@pytest.mark.parametrize("strategy", strategies(0))
@pytest.mark.parametrize("name", PROGRAMS)
def test_many_schedules(name: str, strategy: str) -> None:
    assert explore(PROGRAMS[name](), strategies(seed=2)[strategy], MANY) == MANY


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one_device", "two_devices", "a_diamond_across_devices"])
def test_all_schedules_with_one_preemption(name: str) -> None:
    count = explore(PROGRAMS[name](), DepthFirst(preemptions=1), 100_000)
    assert 10 < count < 100_000


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_schedules_of_single_lines(name: str) -> None:
    # Of compiled modules there are none: then these are more schedules as above.
    program = PROGRAMS[name]()
    assert explore(program, RandomWalk(seed=3, preemption=0.02), FEW, LINES_OF) == FEW
    assert explore(program, PriorityChanges(seed=3, changes=5), FEW, LINES_OF) == FEW
