"""What programs leave behind: after the same program ten times there are no more objects."""

from __future__ import annotations

import functools
import gc
import random
from collections import Counter
from typing import Any

from tests.torture.families.interrupts import PREAMBLE, body_of
from tests.torture.finding import Finding, counts

NAME = "leaks"
TIME_LIMIT = 60.0
TURNS = 6
ALLOWED = 3
"""So many objects of a type more are not a leak: caches fill."""


@functools.cache
def _names() -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "torture_leaks"}
    exec(compile(PREAMBLE, "<torture>", "exec"), names)
    gc.collect()
    gc.freeze()  # existing objects are not counted
    return names


def run_case(seed: int) -> Finding | None:
    chance = random.Random(seed)
    lines = body_of(chance)
    text = "def program():\n" + "".join(f"    {line}\n" for line in lines)
    names = dict(_names())
    exec(compile(text, "<torture>", "exec"), names)
    program = names["program"]
    for _ in range(3):
        _run(program)
    first = _census()
    for _ in range(TURNS):
        _run(program)
    second = _census()
    counts["programs"] += 1
    growing = {
        name: second[name] - first[name]
        for name in second
        if second[name] - first[name] >= TURNS + ALLOWED
    }
    if growing:
        # A cache that fills stops to grow.
        for _ in range(TURNS):
            _run(program)
        third = _census()
        growing = {n: third[n] - second[n] for n in growing if third[n] - second[n] >= TURNS}
    if not growing:
        return None
    return Finding(
        f"leaks: {', '.join(f'{n} {name}' for name, n in sorted(growing.items()))} more after "
        f"{TURNS} times",
        f"{PREAMBLE}\n{text}\nimport gc\nfor _ in range({TURNS}):\n    program()\n"
        "    gc.collect()\n    print(len(gc.get_objects()))\n",
        group=f"leaks: {', '.join(sorted(growing))}",
    )


def _run(program: Any) -> None:
    try:
        program()
    except Exception as error:
        error.__traceback__ = None


def _census() -> Counter[str]:
    gc.collect()
    gc.collect()
    return Counter(type(each).__name__ for each in gc.get_objects())
